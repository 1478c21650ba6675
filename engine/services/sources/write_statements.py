"""INSERT INTO and CREATE TABLE … AS for tables of attached databases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.statements import creates_table, first_word, query_inside
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.language.query_text.tokenizer import sql_of
from blendfusion.services.sources.destinations import (
    TableWrite,
    destination_of,
    drop_table,
    table_exists,
    write_frame,
)
from blendfusion.services.sources.other_statements import check_statement

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.prepare.query import Query
    from blendfusion.services.sources.session import Attaching

__all__ = ["drop_table", "table_exists", "write_frame", "write_rows"]

_CLAUSES = ("RETURNING", "ON", "OVERWRITE", "IGNORE")


def write_rows(session: Attaching, query: Query) -> Frame | None:
    """The frame of an INSERT or CREATE TABLE … AS of a table of an attached database: its result is
    the number of rows. None for another statement. CREATE is carried out at once, as DataFusion
    does; INSERT when the frame runs. Raises QueryError for another change of a database."""
    if not session.attached:
        return None
    check_statement(session, query.text)
    creates = creates_table(query.text) and query.options is None
    if not (creates or first_word(query.text) == "INSERT"):
        return None
    tree = TokenTree(query.text)
    head = _Head.of(tree)
    if head is None:
        return None
    destination = destination_of(session, head.path)
    if destination is None:
        return None
    head.check(tree)
    inside = query_inside(query.text)
    if inside is None:
        form = "CREATE TABLE shop.t AS SELECT …" if creates else "INSERT INTO shop.t SELECT …"
        raise tree.refusal(0, "a table of an attached database gets the rows of a query", form)
    if creates and head.if_missing and destination.columns:
        return _count(session, 0)
    if creates and destination.columns and not head.replaces:
        raise tree.refusal(
            head.start, f"{destination.title} exists", "CREATE OR REPLACE TABLE, or INSERT INTO."
        )
    if not creates and not destination.columns:
        raise tree.refusal(
            head.start, f"there is no table {destination.title}", "CREATE TABLE … AS makes one."
        )
    if query.options is not None:
        query.plan(session)  # which checks them
    blank = " " * inside[0]
    rows = replace(query, text=sql_of(blank + query.text[inside[0] : inside[1]])).plan(session)
    names = None if creates else head.columns
    write = destination.plan(rows.schema(), "append", (), names=names, is_new=creates)
    frame = _count(session)
    frame.source, frame.statement = rows, lambda found: _carry_out(session, write, found)
    if not creates:
        return frame
    made = _count(session, frame.to_pylist()[0]["count"])
    made.latest.trace = frame.latest.trace
    return made


def _carry_out(session: Attaching, write: TableWrite, rows: pa.Table) -> Frame:
    return _count(session, write.carry_out(rows).rows)


def _count(session: Attaching, *rows: int) -> Frame:
    table: Any = pa.table({"count": pa.array(rows, pa.uint64())})
    return session.new_table(table)


@dataclass(frozen=True, slots=True)
class _Head:
    """The beginning of a statement, up to its query."""

    path: tuple[str, ...]
    columns: tuple[str, ...]
    start: int
    end: int
    replaces: bool
    if_missing: bool

    @staticmethod
    def of(tree: TokenTree) -> _Head | None:
        """The head of INSERT INTO t (a, b) … or CREATE TABLE t …; None for another text."""
        word = "INTO" if tree.word(0) == "INSERT" else "TABLE"
        at = next((i for i in range(1, min(5, len(tree.tokens))) if tree.word(i) == word), None)
        if at is None:
            return None
        start = at + 1
        if_missing = [tree.word(start + i) for i in range(3)] == ["IF", "NOT", "EXISTS"]
        start += 3 * if_missing
        if not tree.is_name(start):
            return None
        end = start + 1
        while tree.kind(end) == TokenType.DOT and tree.is_name(end + 1):
            end += 2
        path = tuple(tree.name(i) for i in range(start, end, 2))
        columns: tuple[str, ...] = ()
        if word == "INTO" and tree.opens(end) and not tree.is_query(end, tree.close[end] + 1):
            inside = tree.parts(end + 1, tree.close[end])
            columns = tuple(tree.name(first) for first, _ in inside)
            end = tree.close[end] + 1
        return _Head(path, columns, start, end, tree.word(1) == "OR", if_missing)

    def check(self, tree: TokenTree) -> None:
        """Raises QueryError for a clause that is not carried out."""
        at = 0
        while at < len(tree.tokens):
            is_clause = tree.word(at) in _CLAUSES and not (self.end <= at and tree.word(at) == "ON")
            follows = tree.word(at) == "ON" and tree.word(at + 1) in ("CONFLICT", "DUPLICATE")
            if follows or (is_clause and not self.start <= at < self.end):
                raise tree.refusal(
                    at,
                    f"there is no {tree.word(at)} here",
                    "frame.write_table('shop.t', mode='upsert', key='id') changes rows that exist.",
                )
            at = tree.close.get(at, at) + 1
