"""``ALTER TABLE t ADD COLUMN topic AS (llm_…(…))`` and ``REFRESH COLUMN t.topic``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.services.views.columns import Backfill

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.services.views.session import ViewKeeping

_ADD = "ALTER TABLE t ADD COLUMN topic AS (llm_classify(text, ['a', 'b']))."
_REFRESH = "REFRESH COLUMN t.topic."


def alter_table(session: ViewKeeping, sql: str) -> Frame:
    """Carry out an ALTER that adds a column of answers: a frame of what was asked. Raises
    QueryError for any other."""
    tree = TokenTree(sql.rstrip().rstrip(";"))
    table, behind = _path(tree, 2)
    at = behind + 1 + (tree.word(behind + 1) == "COLUMN")
    is_known = table and tree.word(behind) == "ADD" and tree.is_name(at)
    opened = at + 2
    if not is_known or tree.word(at + 1) != "AS" or not tree.opens(opened):
        raise QueryError("this ALTER TABLE is not possible", hint=f"A column of answers: {_ADD}")
    if tree.close[opened] != len(tree.tokens) - 1:
        raise tree.refusal(tree.close[opened] + 1, "this ALTER TABLE goes on", _ADD)
    expression = str(tree.source_text(opened + 1, tree.close[opened]))
    if not expression.strip():
        raise tree.refusal(opened, "the column has no expression", _ADD)
    return _report(session, session.model_columns.add(".".join(table), tree.name(at), expression))


def refresh_column(session: ViewKeeping, sql: str) -> Frame:
    """Carry out a REFRESH COLUMN: a frame of what was asked. Raises QueryError."""
    tree = TokenTree(sql.rstrip().rstrip(";"))
    path, behind = _path(tree, 2)
    if len(path) < 2 or behind != len(tree.tokens):
        raise QueryError("REFRESH COLUMN takes a table and a column", hint=_REFRESH)
    return _report(session, session.model_columns.refresh(".".join(path[:-1]), path[-1]))


def _path(tree: TokenTree, at: int) -> tuple[list[str], int]:
    """The parts of a name such as ``shop.reviews``, and the token behind it."""
    parts = []
    while tree.is_name(at):
        parts.append(tree.name(at))
        if tree.kind(at + 1) != TokenType.DOT:
            return parts, at + 1
        at += 2
    return [], at


def _report(session: ViewKeeping, done: Backfill) -> Frame:
    row = {
        "table": done.column.table,
        "column": done.column.column,
        "version": done.version,
        "rows": done.rows,
        "asked": done.values,
        "provenance": str(done.provenance),
    }
    return session.new_table(pa.Table.from_pylist([row]))
