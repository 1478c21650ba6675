"""CREATE TABLE … AS, INSERT and COPY of a query with calls, or of one that DataFusion would run
wrongly: the query runs as any other, and the statement takes its rows.

DataFusion carries CREATE out while it plans it, and Substrait has no INSERT and no COPY, so that
their plans are no plans of stages.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import SessionContext

from blendfusion.errors import QueryError
from blendfusion.language.opaque.datafusion_bugs import may_meet_bug
from blendfusion.language.query_text.parameters import spelled_parameters
from blendfusion.language.query_text.statements import (
    BLANK,
    CREATES_TABLE,
    creates_table,
    first_word,
    query_inside,
)
from blendfusion.language.query_text.tokenizer import sql_of
from blendfusion.prepare.query import Query
from blendfusion.services import parts

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.prepare.frame_sources import FrameSources

_NAME = re.compile(
    rf"""{BLANK}*+(?:IF{BLANK}++NOT{BLANK}++EXISTS{BLANK}++)?"""
    r"""((?:"(?:[^"]|"")*"|\w+)(?:\s*\.\s*(?:"(?:[^"]|"")*"|\w+))*)""",
    re.IGNORECASE | re.DOTALL,
)
_PART = re.compile(r'"(?:[^"]|"")*"|\w+')
_ROWS = "written_rows"


def create_table(session: FrameSources, query: Query) -> Frame | None:
    """The frame of CREATE TABLE … AS with calls, or of a query that DataFusion would run wrongly,
    carried out: its trace is that of the query. None for another statement, and for a table whose
    columns' types say what the calls are asked for.

    A table that exists, or whose schema does not, asks nothing: the statement is then an error, or
    does nothing."""
    if query.options is not None or not creates_table(query.text):
        return None
    frame = _rows_of(session, query)
    if frame is None:
        return None
    takes = _takes_rows(session, query.text)
    table = frame.to_arrow_table() if takes else frame.schema().empty_table()
    made = _over(session, query, table)
    made.latest.trace = frame.latest.trace
    return made


def with_source(session: FrameSources, query: Query, frame: Frame) -> Frame:
    """``frame`` of ``query``; if that is an INSERT or a COPY of a query with calls, or of one that
    DataFusion would run wrongly, it runs that query first, and so does an UPDATE or a DELETE, which
    a service carries out."""
    word = first_word(query.text)
    rows = _rows_of(session, query) if word in ("INSERT", "COPY") else None
    if rows is not None:
        frame.source = rows
        frame.statement = partial(_over, session, query)
        return frame
    if word not in ("UPDATE", "DELETE"):
        return frame
    for with_changes in parts("updates"):
        changed: Frame = with_changes(
            session, query, frame, asks=lambda: bool(_calls(session, query))
        )
        return changed
    raise QueryError(
        f"{word} needs the service blendfusion/services/updates, which is not installed"
    )


def _rows_of(session: FrameSources, query: Query) -> Frame | None:
    """The frame of the query inside of a statement; None if DataFusion can run it there, or if the
    statement says what its calls are asked for."""
    inside = query_inside(query.text)
    if inside is None:
        return None
    start, stop = inside
    blank = re.sub(r"[^\n]", " ", query.text[:start])
    rows = replace(query, text=sql_of(blank + query.text[start:stop]))
    found = _calls(session, query)
    if found:
        return rows.plan(session) if _calls(session, rows) == found else None
    try:
        frame = rows.plan(session)
    except QueryError:  # the statement says what is wrong
        return None
    return frame if may_meet_bug(frame.logical_plan().display_indent()) else None


def _over(session: FrameSources, query: Query, table: pa.Table) -> Frame:
    """The frame of a statement with ``table`` in the place of its query."""
    start, stop = query_inside(query.text) or (0, 0)
    text = f"{query.text[:start]}SELECT * FROM ${_ROWS}{query.text[stop:]}"
    return Query(text, named_params={_ROWS: session.new_table(table)}).plan(session)


def _calls(session: FrameSources, query: Query) -> set[str]:
    parameters = spelled_parameters(query.param_values, query.named_params)
    ready = session.calls.reading(session.engine, query.text, parameters, whole=True)()
    return {call.name for call in ready.calls}


def _takes_rows(session: FrameSources, sql: str) -> bool:
    """Whether a CREATE TABLE makes one: its schema is there, and no table of its name, unless it
    replaces that."""
    head = CREATES_TABLE.match(sql)
    found = None if head is None else _NAME.match(sql, head.end())
    if head is None or found is None:
        return True
    names = [name.strip('"') if '"' in name else name.lower() for name in _PART.findall(found[1])]
    catalogs = names[-3:-2] or ["datafusion"]
    try:
        for schema in names[-2:-1]:
            SessionContext.catalog(session, catalogs[0]).schema(schema)
    except KeyError:
        return False
    try:
        SessionContext.table(session, found[1])
    except Exception:  # there is none
        return True
    return head[1] is not None
