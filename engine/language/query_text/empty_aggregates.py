"""Writes HAVING of aggregates of all rows as CASE in subqueries, which may read what is around.

DataFusion 55 plans such a subquery as groups of a join, and adds the row of no group itself: not
for an item without an aggregate (``count(*) IS NULL`` becomes FALSE), nor below HAVING, which an
inner LATERAL leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.empty_subqueries import OF_ALL_ROWS, is_value, relations_of
from blendfusion.language.query_text.query_tree import Reader, Select, Source, rewrite_in_rounds
from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.subquery_conditions import left_side
from blendfusion.udfs.declare.arguments import quoted_name

_OTHERS = {
    *("GROUP", "QUALIFY", "LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT", "MINUS"),
    *("DISTINCT", "OVER", "WINDOW", "ORDER"),
}
_COUNTED = "count(*) >= 0"
_HINT = "Write LEFT JOIN LATERAL (…) AS l ON true, and the condition in WHERE: l.n > 1."
_WHOLE = "Write the left side in parentheses: (a + 1) IN (…)."


def empty_aggregates(sql: str) -> str:
    """``sql`` with ``CASE WHEN c THEN v END`` in such subqueries, in place of ``HAVING c``, and
    where ``v`` has no aggregate."""
    return rewrite_in_rounds(sql, _rewrite_one)


def _rewrite_one(reader: Reader) -> str | None:
    relations = relations_of(reader)
    sources = {source.query.start: source for source in _laterals(reader) if source.query}
    for start, _, select, query in reader.selects:
        at = query.start - 1
        if start != query.start or not reader.opens(at) or len(query.branches) != 1:
            continue
        source = sources.get(query.start)
        tested = reader.word(at - 1) == "IN"
        if source is None and not tested and (at in relations or not is_value(reader, at)):
            continue
        clauses = {word: place for place, word in _top(reader, *select.items)}
        clauses |= {word: place for place, word in _top(reader, select.items[1], query.end)}
        if not _OTHERS.isdisjoint(clauses):
            continue
        having = clauses.get("HAVING")
        if having is not None and source is not None and source.words != ("LEFT", "JOIN"):
            raise reader.refusal(having, "HAVING inside LATERAL would keep every row", _HINT)
        if tested:
            if having is not None and len(reader.items(select)) == 1:
                return edit(reader.text, [_equality(reader, select, having, at)]).sql
            continue
        edits = [*_cases(reader, select, having, query.end, named=source is not None)]
        if edits:
            return edit(reader.text, edits).sql
    return None


def _equality(reader: Reader, select: Select, having: int, opened: int) -> tuple[int, int, str]:
    """The edit that makes an equality of ``v IN (SELECT …)``, whose parentheses open at ``opened``;
    it is FALSE where HAVING is not true."""
    end = reader.close[opened]
    operator = opened - 1 - (reader.word(opened - 2) == "NOT")
    start = reader.operand_before(operator)
    if start != left_side(reader, operator):
        raise reader.refusal(operator, "HAVING inside IN would lose rows", _WHOLE)
    value, source = reader.source_text(start, operator), reader.source_text(select.items[1], having)
    ((first, last),) = reader.items(select)
    item = reader.source_text(first, last - 2 if reader.word(last - 2) == "AS" else last)
    condition = reader.source_text(having + 1, end)
    one, kept = (
        f"(SELECT CASE WHEN {_COUNTED} THEN {text} END {source})" for text in (item, condition)
    )
    negated = "NOT " * (operator < opened - 1)
    text = f"{negated}CASE WHEN {kept} THEN {value} = {one} ELSE FALSE END"
    return (*reader.span(start, end + 1), f"({text})")


def _laterals(reader: Reader) -> Iterator[Source]:
    for _, _, select, _ in reader.selects:
        yield from (source for source in reader.sources(select) if source.lateral)


def _top(reader: Reader, at: int, end: int) -> Iterator[tuple[int, str]]:
    """The words outside of parentheses."""
    while at < end:
        yield at, reader.word(at)
        at = reader.close.get(at, at) + 1


def _cases(
    reader: Reader, select: Select, having: int | None, end: int, *, named: bool
) -> Iterator[tuple[int, int, str]]:
    """The edits of the items. ``named``: those without a name keep theirs."""
    items = reader.items(select)
    if having is None and not any(_has_aggregate(reader, *item) for item in items):
        return
    condition = _COUNTED if having is None else reader.source_text(having + 1, end)
    for first, last in items:
        stop = last - 2 if reader.word(last - 2) == "AS" else last
        begin, behind = reader.span(first, stop)
        if having is None and _is_folded(reader, first, stop):
            text = reader.source_text(first, stop)
            name = f" AS {quoted_name(text)}" if stop == last else ""
            yield begin, begin, f"CASE WHEN {_COUNTED} THEN "
            yield behind, behind, f" END{name}"
            continue
        if having is None and (_has_aggregate(reader, first, stop) or stop == last):
            continue
        if named and stop == last:
            raise reader.refusal(first, "an item of LATERAL beside HAVING has no name")
        yield begin, begin, f"CASE WHEN {condition} THEN "
        yield behind, behind, " END"
    if having is not None:
        yield (*reader.span(having, end), "")


def _is_folded(reader: Reader, start: int, end: int) -> bool:
    """Whether DataFusion may make a constant of an item: it knows that a count is not NULL."""
    for at in range(start, end):
        if reader.word(at) != "COUNT" or not reader.opens(at + 1):
            continue
        behind = reader.close[at + 1] + 1
        if reader.word(behind) == "FILTER" and reader.opens(behind + 1):
            behind = reader.close[behind + 1] + 1
        while reader.kind(behind) == TokenType.R_PAREN:
            behind += 1
        if reader.word(behind) == "IS":
            return True
    return False


def _has_aggregate(reader: Reader, start: int, end: int) -> bool:
    return any(
        reader.word(at) in OF_ALL_ROWS
        and reader.opens(at + 1)
        and reader.word(reader.close[at + 1] + 1) != "OVER"
        for at in range(start, end)
    )
