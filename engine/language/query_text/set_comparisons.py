"""Gives the column of the subquery of ``= ANY (SELECT …)`` a name of its own.

DataFusion 55 takes a column of the subquery for one of the query around it where both have one
name, as in ``FROM g WHERE n >= ALL (SELECT n FROM g)``, and compares a value with itself."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.empty_subqueries import may_be_empty
from blendfusion.language.query_text.query_tree import Query, Reader, Select
from blendfusion.language.query_text.repeated_names import alias_of
from blendfusion.language.query_text.source_map import edit

_OPERATORS = (
    *(TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
)
_WORDS = ("ANY", "SOME", "ALL")
_NAME = "compared"


def set_comparisons(sql: str) -> str:
    """``sql`` in which these subqueries have a column with a name of its own."""
    reader = Reader(sql)
    edits = [
        edit
        for *_, select, _ in reader.selects
        for query in select.inner
        if _is_compared(reader, query)
        for edit in _edits(reader, query)
    ]
    return edit(sql, edits).sql if edits else sql


def _is_compared(reader: Reader, query: Query) -> bool:
    at = query.start - 2
    return reader.word(at) in _WORDS and reader.kind(at - 1) in _OPERATORS


def _edits(reader: Reader, query: Query) -> Iterator[tuple[int, int, str]]:
    """The edits that name the column. The only item of a single SELECT gets an alias. Any other
    query is wrapped in a SELECT, in which DataFusion refuses columns of the outer query: with them,
    the rows of a UNION are wrong. An aggregate of all rows is a value: of those that read the outer
    query, DataFusion leaves out the row of no rows."""
    if not may_be_empty(reader, query.start, query.end):
        yield *reader.span(query.start - 2, query.start - 1), ""
        return
    branch, *others = query.branches
    items = reader.items(branch) if isinstance(branch, Select) and not others else []
    if len(items) != 1 or reader.kind(items[0][1] - 1) == TokenType.STAR:
        start, end = reader.span(query.start, query.end)
        yield start, start, f"SELECT {_NAME} FROM ("
        yield end, end, f") AS {_NAME} ({_NAME})"
        return
    alias = alias_of(reader, *items[0])
    if alias is not None:
        yield *reader.span(alias, alias + 1), _NAME
    else:
        end = reader.span(*items[0])[1]
        yield end, end, f" AS {_NAME}"
