"""Hides from DataFusion 55 that the values of a subquery are not NULL, where it may have no row.

``(SELECT 1 FROM u WHERE false) IS NULL`` is FALSE there, and ``coalesce`` of it NULL: a subquery
without a row is NULL, but DataFusion takes the type of its column for its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blendfusion.language.query_text.query_tree import Query, Reader, Select
from blendfusion.language.query_text.source_map import edit

_MAY_DROP = {
    *("WITH", "GROUP", "HAVING", "QUALIFY", "LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT"),
    *("EXCEPT", "MINUS"),
}
OF_ALL_ROWS = {
    *("COUNT", "SUM", "MIN", "MAX", "AVG", "MEAN", "MEDIAN", "STDDEV", "BOOL_AND", "BOOL_OR"),
    *("ARRAY_AGG", "STRING_AGG"),
}
"""The aggregates of which all rows give a row."""
_NO_VALUE = {"IN", "EXISTS", "ANY", "SOME", "ALL", "AS", "LATERAL", "ARRAY"}
_NUMBERS = {"COUNT", "ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE"}
"""Functions without NULL."""
_CALL = re.compile(r"_[0-9A-F]{12}$")
_OPERATORS = {
    *("AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "WHERE", "HAVING", "QUALIFY", "ON", "BY"),
    *("SELECT", "DISTINCT", "BETWEEN", "LIKE", "ILIKE", "FROM"),
}


def empty_subqueries(sql: str) -> str:
    """``sql`` with ``nullif((SELECT …), NULL)`` for such values, except for whole items of a select
    list without a name, which keep theirs."""
    reader = Reader(sql)
    relations = relations_of(reader)
    edits = []
    for at in range(1, len(reader.tokens) - 1):
        if reader.word(at + 1) not in ("SELECT", "WITH") or not reader.opens(at):
            continue
        end = reader.close[at]
        value = reader.outer and at not in relations and is_value(reader, at)
        if not value or _is_answer(reader, at + 1, end) or reader.is_item(at, end + 1):
            continue
        if may_be_empty(reader, at + 1, end):
            first, last = reader.span(at, end + 1)
            edits += [(first, first, "nullif("), (last, last, ", NULL)")]
    return str(edit(sql, edits).sql) if edits else sql


def relations_of(reader: Reader) -> set[int]:
    """Where the parentheses of relations and of branches of set operators open."""
    found: set[int] = set()
    for query, _ in reader.scopes():
        for branch in query.branches:
            if isinstance(branch, Select):
                for source in reader.sources(branch):
                    found.update(_opens(source.query))
            elif len(query.branches) > 1 or any(query is outer for outer in reader.outer):
                found.update(_opens(branch))
    return found


def _opens(query: Query | None) -> Iterator[int]:
    """Where the parentheses of a relation open, and those right inside them."""
    while query is not None:
        yield query.start - 1
        first = query.branches[0] if len(query.branches) == 1 else None
        query = first if isinstance(first, Query) else None


def is_value(reader: Reader, at: int) -> bool:
    """Whether a query in the parentheses at ``at`` stands for one value."""
    end = reader.close[at]
    while reader.opens(at - 1) and reader.close[at - 1] == end + 1:
        if reader.is_called(at - 1) and reader.word(at - 2) not in {*_OPERATORS, *_NO_VALUE}:
            break
        at, end = at - 1, end + 1
    before = reader.word(at - 1)
    called = reader.is_called(at) and before not in _OPERATORS
    return not (called or before in _NO_VALUE or reader.tokens[at - 1].text == "=>")


def may_be_empty(reader: Reader, start: int, end: int) -> bool:
    """Whether a query may have no row: any but an aggregate of all rows."""
    at, stop = start, end
    while at < end:
        if reader.word(at) in _MAY_DROP:
            return True
        if reader.word(at) in ("FROM", "WHERE"):
            stop = min(stop, at)
        at = reader.close.get(at, at) + 1
    return stop < end and not _has_aggregate(reader, start, stop)


def _has_aggregate(reader: Reader, at: int, end: int) -> bool:
    while at < end:
        called = reader.word(at) in OF_ALL_ROWS and reader.opens(at + 1)
        if called and reader.word(reader.close[at + 1] + 1) != "OVER":
            return True
        if reader.opens(at) and reader.word(at + 1) in ("SELECT", "WITH"):
            at = reader.close[at]
        at += 1
    return False


def _is_answer(reader: Reader, start: int, end: int) -> bool:
    """Whether the value of a query is an answer, which may be NULL in any case, and has its type
    from what is beside the query."""
    if reader.word(start + 1) in _NUMBERS:
        return False
    stop = next((at for at in range(start, end) if reader.word(at) == "FROM"), end)
    return any(_CALL.search(word) for word in reader.words[start:stop])
