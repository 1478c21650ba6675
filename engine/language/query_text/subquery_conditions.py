"""Writes conditions on subqueries that DataFusion 55 gets wrong in other words.

It has IN and EXISTS as joins that know TRUE and FALSE alone: below NOT, OR, CASE or IS NULL, a NULL
in the subquery or beside it counts as no match. It refuses NOT IN of a subquery that reads the
query around it. And it looks for rows of ``EXISTS (SELECT count(*) … )`` and ``IN (SELECT max(n)
…)`` in the groups by what such a subquery reads, of which there is none where no row is found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.lateral import Columns
from blendfusion.language.query_text.query_tree import (
    Query,
    Reader,
    Select,
    Source,
    rewrite_in_rounds,
)
from blendfusion.language.query_text.repeated_names import alias_of
from blendfusion.language.query_text.source_map import edit

_MARK = "/* three-valued */"
"""Stands behind IN where the condition was rewritten."""
_CLAUSES = ("WHERE", "HAVING", "ON", "QUALIFY")
_GROUPS = {"GROUP", "QUALIFY", "WINDOW"}
_BEFORE = {*_CLAUSES, "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "SELECT", "BY"}
_ENDS = {
    *("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "QUALIFY", "WINDOW"),
    *("UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL"),
}
_OF_ROWS = ("EXISTS", "IN", "ANY", "SOME", "ALL")
_WITHOUT = ("AND", "OR", "NOT", "IS", "NULL", "TRUE", "FALSE", "BETWEEN", "IN")
_OF_CASE = ("WHEN", "THEN", "ELSE")
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_COMPARISONS = (
    *(TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
)
_AGGREGATE = re.compile(
    r"(?:count|sum|avg|mean|min|max|median|first_value|last_value|nth_value|array_agg|string_agg|"
    r"(?:bool|bit)_\w+|(?:stddev|var|covar|regr|approx)\w*|corr|grouping)",
    re.IGNORECASE,
)


class _Parts(NamedTuple):
    """Facts about places in a text: where the part around each begins and ends, and whether
    the part that begins there has an OR; and where dots stand."""

    begins: dict[int, int | None]
    ends: dict[int, int]
    either: dict[int, bool]
    dots: Sequence[int]


def subquery_conditions(sql: str, columns: Columns) -> str:
    """``sql`` in which these conditions have their rows."""
    return rewrite_in_rounds(sql, lambda reader: _rewrite_one(reader, columns))


def conditions_above_aggregates(sql: str, columns: Columns) -> str:
    """``sql`` in which conditions on values of subqueries alone stay above aggregates."""
    reader = Reader(sql)
    edits = [
        part for *_, select, _ in reader.selects for part in _conditions(reader, select, columns)
    ]
    return str(edit(sql, edits).sql) if edits else sql


def _rewrite_one(reader: Reader, columns: Columns) -> str | None:
    """The text with all of them rewritten that stand in no other one; None if there is none."""
    edits: list[tuple[int, int, str]] = []
    for start, end, text in sorted(_rewrites(reader, columns), key=lambda e: (e[0], -e[1])):
        if not edits or edits[-1][1] <= start:
            edits.append((start, end, text))
    return str(edit(reader.text, edits).sql) if edits else None


def _rewrites(reader: Reader, columns: Columns) -> Iterator[tuple[int, int, str]]:
    dots = [at for at, token in enumerate(reader.tokens) if token.token_type == TokenType.DOT]
    known = _Parts({}, {}, {}, dots)
    for *_, select, _ in reader.selects:
        for query in select.inner:
            opening, at = query.start - 1, query.start - 2
            if opening not in reader.close or select.items[0] <= at < select.items[1]:
                continue
            found: tuple[int, str] | None = None
            if reader.word(at) == "EXISTS":
                text = _exists(reader, query, columns)
                found = None if text is None else (at, text)
            elif reader.word(at) == "IN" and not _is_marked(reader, at):
                found = _in(reader, query, columns, known)
            if found is not None:
                yield *reader.span(found[0], reader.close[opening] + 1), found[1]


def _is_marked(reader: Reader, at: int) -> bool:
    return _MARK in reader.text[reader.tokens[at].end + 1 : reader.tokens[at + 1].start]


def _reads_outside(reader: Reader, query: Query, columns: Columns) -> bool:
    """Whether a subquery cannot be planned by itself."""
    common = reader.visible_tables(query.start)
    return columns(common, f"({reader.source_text(query.start, query.end)}\n)") is None


def _conditions(reader: Reader, select: Select, columns: Columns) -> Iterator[tuple[int, int, str]]:
    """The conditions of a SELECT that read values of subqueries alone, above what may be an
    aggregate of all rows, each below EXISTS."""
    having = _clause(reader, select, "HAVING")
    clauses = [(having, select.end)] if having and _is_one_row(reader, select) else []
    if select.where and any(_may_be_one_row(reader, source) for source in select.sources):
        clauses.append(select.where)
    for word, end in clauses:
        for first, last in reader.conjuncts(word + 1, end):
            inner = [q for q in select.inner if first <= q.start < last]
            inside = {at for q in inner for at in range(q.start, q.end)}
            outside = [at for at in range(first, last) if at not in inside]
            if not inner or any(reader.word(q.start - 2) in _OF_ROWS for q in inner):
                continue
            if any(reader.is_name(at) and reader.word(at) not in _WITHOUT for at in outside):
                continue
            if not any(_reads_outside(reader, query, columns) for query in inner):
                start, stop = reader.span(first, last)
                yield start, stop, f"EXISTS (SELECT 1 WHERE {reader.source_text(first, last)})"


def _may_be_one_row(reader: Reader, source: Source) -> bool:
    """Whether an aggregate of all rows is in a relation of the query."""
    if source.query is None and "WITH" not in reader.words:
        return False
    name = reader.name(source.end - 1) if source.kind == "table" else None
    common = [c for query, _ in reader.scopes() for c in query.common]
    relations = [source.query, *(c.query for c in common if reader.name(c.name) == name)]
    below = (part for query in relations if query is not None for part, _ in query.walk())
    branches = (branch for query in below for branch in query.branches)
    return any(isinstance(b, Select) and _is_one_row(reader, b) for b in branches)


def _names_outside(reader: Reader, query: Query, dots: Sequence[int]) -> bool:
    """Whether a name in a subquery, before one of ``dots``, may be that of a relation outside."""
    named = [dot - 1 for dot in dots if query.start < dot < query.end and reader.is_name(dot - 1)]
    if not named:
        return False
    inside = {
        reader.name_of(source)
        for part, _ in query.walk()
        for branch in part.branches
        if isinstance(branch, Select)
        for source in reader.sources(branch)
    }
    return any(reader.name(at) not in inside for at in named)


# --- EXISTS ---


def _exists(reader: Reader, query: Query, columns: Columns) -> str | None:
    """EXISTS of one row of all rows, or of rows behind others, as a value of a subquery."""
    branch = _single(query)
    if branch is None:
        return None
    rows = str(reader.source_text(branch.items[1], branch.end))
    if _is_one_row(reader, branch):
        if query.end > branch.end or not _reads_outside(reader, query, columns):
            return None
        having = _clause(reader, branch, "HAVING")
        if having is None:
            return f"((SELECT count(*) {rows}) >= 0)"
        before = reader.source_text(branch.items[1], having)
        return f"coalesce((SELECT {reader.source_text(having + 1, branch.end)} {before}), FALSE)"
    offset = query.end - 2
    is_last = reader.word(offset) == "OFFSET" and reader.kind(query.end - 1) == TokenType.NUMBER
    plain = not _words(reader, branch) & {*_GROUPS, "HAVING"} and not _is_distinct(reader, branch)
    if is_last and branch.end == offset and plain and _reads_outside(reader, query, columns):
        return f"((SELECT count(*) {rows}) > {reader.tokens[query.end - 1].text})"
    return None


def _single(query: Query) -> Select | None:
    """The SELECT of a query that has no other, and nothing before it."""
    if len(query.branches) != 1 or query.common:
        return None
    (branch,) = query.branches
    return branch if isinstance(branch, Select) else None


def _words(reader: Reader, branch: Select) -> set[str]:
    return {reader.word(at) for at in _at_top(reader, branch.items[1], branch.end)}


def _clause(reader: Reader, branch: Select, word: str) -> int | None:
    """Where a clause of a SELECT begins."""
    places = _at_top(reader, branch.items[1], branch.end)
    return next((at for at in places if reader.word(at) == word), None)


def _is_distinct(reader: Reader, branch: Select) -> bool:
    return reader.word(branch.items[0]) == "DISTINCT"


def _is_one_row(reader: Reader, branch: Select) -> bool:
    """Whether a SELECT computes an aggregate of all of its rows."""
    words = _words(reader, branch)
    if words & _GROUPS or not words & {"FROM"}:
        return False
    return "HAVING" in words or _has_aggregate(reader, *branch.items)


def _has_aggregate(reader: Reader, start: int, end: int) -> bool:
    """Whether an aggregate is called among tokens, outside of subqueries."""
    at = start
    while at < end:
        if reader.opens(at) and reader.is_query(at, reader.close[at] + 1):
            at = reader.close[at] + 1
            continue
        if reader.opens(at) and _AGGREGATE.fullmatch(reader.word(at - 1)):
            behind = reader.close[at] + 1
            if reader.word(behind) == "FILTER" and reader.opens(behind + 1):
                behind = reader.close[behind + 1] + 1
            if reader.word(behind) != "OVER":
                return True
        at += 1
    return False


# --- IN ---


def _in(reader: Reader, query: Query, columns: Columns, known: _Parts) -> tuple[int, str] | None:
    """(where an IN with its left side starts, what stands in its place)"""
    at = query.start - 2
    negated = reader.word(at - 1) == "NOT"
    start = left_side(reader, at - negated)
    end = reader.close[query.start - 1] + 1
    if start == at - negated:
        return None
    value = str(reader.source_text(start, at - negated))
    inner = str(reader.source_text(query.start, query.end))
    place, branch = _place(reader, start, end, known), _single(query)
    is_value = branch is not None and query.end == branch.end and _is_one_row(reader, branch)
    if place in ("term", "positive") and not negated and not is_value:
        return None
    alone = place in ("term", "negated term") and not _names_outside(reader, query, known.dots)
    outside = not alone and _reads_outside(reader, query, columns)
    if not outside and place == ("negated term" if negated else "term"):
        return None
    if branch and is_value and _clause(reader, branch, "HAVING") is None:
        return start, f"({value} {'<>' if negated else '='} ({inner}))"
    if place is None or (place in ("term", "positive") and not negated):
        return None
    if not outside and place == ("term" if negated else "negated term"):
        return None
    nulls = _nulls(reader, query, outside=outside)
    if nulls is None:
        return None
    empty = f"NOT EXISTS ({inner})"
    if not outside:
        empty = f"(SELECT count(*) FROM ({inner}) AS found) = 0"
    text = (
        f"CASE WHEN {value} IN {_MARK} ({inner}) THEN TRUE WHEN {empty} THEN FALSE "
        f"WHEN ({value}) IS NULL OR {nulls} THEN NULL ELSE FALSE END"
    )
    return start, f"(NOT {text})" if negated else f"({text})"


def left_side(reader: Reader, end: int) -> int:
    """Where the expression starts that ends before an IN."""
    at, cases = end - 1, 0
    while at >= 0:
        word, kind = reader.word(at), reader.kind(at)
        opens = kind in (*_OPENING, *_COMPARISONS, TokenType.COMMA) or word in _BEFORE
        if opens and not cases:
            return at + 1
        cases += (word == "END") - (word == "CASE")
        at = reader.open.get(at, at) - 1
    return end


def _place(reader: Reader, start: int, end: int, known: _Parts) -> str | None:
    """How a condition is read: 'term', or 'negated term' of its NOT, below AND alone;
    'positive', where NULL is FALSE, below AND and OR; 'open' elsewhere. None outside of clauses of
    conditions."""
    negated = connected = either = False
    while True:
        first, last = (
            _begin_of_part(reader, start, known.begins),
            _end_of_part(reader, end, known.ends),
        )
        if first is None:
            return None
        if reader.word(start - 1) == "NOT" and start > first:
            if negated or connected:
                return "open"
            negated, start = True, start - 1
            continue
        if first not in known.either:
            known.either[first] = any(
                reader.word(at) == "OR" for at in _at_top(reader, first, last)
            )
        begins = start == first or reader.word(start - 1) in ("AND", "OR")
        ends = end == last or reader.word(end) in ("AND", "OR")
        if not (begins and ends):
            return "open"
        connected = connected or start > first or end < last
        either = either or known.either[first]
        if reader.word(first - 1) in _CLAUSES:
            if negated:
                return "open" if either else "negated term"
            return "positive" if either else "term"
        if _is_searched(reader, first - 1) and reader.word(last) == "THEN":
            return "open" if negated else "positive"
        if not reader.opens(first - 1) or reader.is_called(first - 1):
            return "open"
        start, end = first - 1, last + 1


def _begin_of_part(reader: Reader, at: int, known: dict[int, int | None]) -> int | None:
    """Behind the bracket, the word of a clause or that of a CASE around a place; None in a list."""
    found: int | None = None
    passed: list[int] = []
    at, cases = at - 1, 0
    while at >= 0:
        if not cases and at in known:
            found = known[at]
            break
        word = reader.word(at)
        cases += (word == "END") - (word == "CASE")
        if word in _CLAUSES or reader.kind(at) in _OPENING:
            found = at + 1
            break
        if cases < 0 or (word in _OF_CASE and not cases):
            found = at + 1
            break
        if reader.kind(at) == TokenType.COMMA or word in ("SELECT", "BY"):
            break
        passed += [at] * (not cases)
        at = reader.open.get(at, at) - 1
    known.update(dict.fromkeys(passed, found))
    return found


def _end_of_part(reader: Reader, at: int, known: dict[int, int]) -> int:
    """Where the part around a place ends."""
    passed: list[int] = []
    cases = 0
    while at < len(reader.tokens) and at not in reader.open:
        if not cases and at in known:
            at = known[at]
            break
        word = reader.word(at)
        cases += (word == "CASE") - (word == "END")
        if word in _ENDS or reader.kind(at) in (TokenType.COMMA, TokenType.SEMICOLON):
            break
        if cases < 0 or (word in _OF_CASE and not cases):
            break
        passed += [at] * (not cases and word != "END")
        at = reader.close.get(at, at) + 1
    known.update(dict.fromkeys(passed, at))
    return at


def _is_searched(reader: Reader, at: int) -> bool:
    """Whether at ``at`` stands WHEN of a CASE of conditions, which takes NULL for FALSE."""
    if reader.word(at) != "WHEN":
        return False
    cases = 0
    while at >= 0 and cases >= 0:
        at = reader.open.get(at, at) - 1
        cases += (reader.word(at) == "END") - (reader.word(at) == "CASE")
    return reader.word(at) == "CASE" and reader.word(at + 1) == "WHEN"


def _at_top(reader: Reader, first: int, last: int) -> Iterator[int]:
    """The places among tokens outside of brackets."""
    while first < last:
        yield first
        first = reader.close.get(first, first) + 1


def _nulls(reader: Reader, query: Query, *, outside: bool) -> str | None:
    """Whether a subquery has a NULL, as a condition; None if that cannot be written. A subquery by
    itself is counted once, where EXISTS would be a join of all rows with all."""
    if not outside:
        inner = reader.source_text(query.start, query.end)
        return f"(SELECT count(*) FROM ({inner}) AS found(value) WHERE found.value IS NULL) > 0"
    branch = _single(query)
    items = reader.items(branch) if branch else []
    if branch is None or query.end > branch.end or len(items) != 1:
        return None
    start, end = items[0]
    window = any(reader.word(at) == "OVER" for at in range(start, end))
    if window or _words(reader, branch) & {*_GROUPS, "HAVING"}:
        return None
    if reader.kind(end - 1) == TokenType.STAR:
        return None
    alias = alias_of(reader, start, end)
    if alias is not None:
        end = alias - (reader.word(alias - 1) == "AS")
    test = f"({reader.source_text(start, end)}) IS NULL"
    stop = branch.where[0] if branch.where else branch.end
    rows = reader.source_text(branch.items[1], stop)
    if branch.where:
        test = f"({reader.source_text(stop + 1, branch.where[1])}) AND {test}"
    return f"EXISTS (SELECT 1 {rows} WHERE {test})"
