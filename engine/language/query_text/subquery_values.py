"""Writes EXISTS and IN (SELECT …) in a select list as counts.

DataFusion 55 has both in predicates alone, and counts of subqueries as values, too."""

from __future__ import annotations

from itertools import chain, count

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Query, Reader, Select, rewrite_in_rounds
from blendfusion.language.query_text.repeated_names import alias_of
from blendfusion.language.query_text.source_map import edit

_GROUPS = {"GROUP", "HAVING", "QUALIFY", "WINDOW"}
_BEFORE = {
    *("SELECT", "DISTINCT", "ALL", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "NULLIF"),
}


def subquery_values(sql: str) -> str:
    """``sql`` with such expressions of select lists as values of counts. One whose left side is no
    single operand stays."""
    return rewrite_in_rounds(sql, _rewrite_one)


def _rewrite_one(reader: Reader) -> str | None:
    for _, _, select, _ in reader.selects:
        for query in select.inner:
            at = query.start - 2
            if not select.items[0] <= at < select.items[1] or query.start - 1 not in reader.close:
                continue
            end = reader.close[query.start - 1] + 1
            if reader.word(at) == "EXISTS":
                return edit(reader.text, [(*reader.span(at, end), _exists(reader, query))]).sql
            if reader.word(at) == "IN":
                negated = reader.word(at - 1) == "NOT"
                start = reader.operand_before(at - negated)
                if not _is_whole(reader, start):
                    continue
                value = reader.source_text(start, at - negated)
                correlated = _among_partners(reader, query, start, at - negated)
                inner = reader.source_text(query.start, query.end)
                text = correlated or _among(value, inner, unused_name(reader.text))
                text = f"(NOT {text})" if negated else text
                return edit(reader.text, [(*reader.span(start, end), text)]).sql
    return None


def _is_whole(reader: Reader, start: int) -> bool:
    """Whether nothing before an operand belongs to it."""
    before = reader.kind(start - 1)
    return reader.word(start - 1) in _BEFORE or before in (TokenType.L_PAREN, TokenType.COMMA)


def _exists(reader: Reader, query: Query) -> str:
    branch = _rows_read(reader, query)
    if branch is not None:
        start, stop = branch.items
        read = "".join(f" + 0 * count({name})" for name in _names(reader, start, stop))
        return f"((SELECT count(*){read} {reader.source_text(stop, branch.end)}) > 0)"
    whole = reader.source_text(query.start, query.end)
    return f"((SELECT count(*) FROM ({whole}) AS found) > 0)"


def _rows_read(reader: Reader, query: Query) -> Select | None:
    """The SELECT of a query that has a row for each that it reads; None for any other query."""
    (branch, *others) = query.branches
    if not isinstance(branch, Select) or others or query.common or query.end != branch.end:
        return None
    start, stop = branch.items
    words = {reader.word(at) for at in range(stop, branch.end) if not reader.depth(stop, at)}
    calls = any(reader.opens(at) for at in range(start, stop))
    return None if calls or reader.word(stop) != "FROM" or words & _GROUPS else branch


def _names(reader: Reader, start: int, stop: int) -> list[str]:
    """The columns of a select list that is nothing else: an unknown one stays an error."""
    commas = [at for at in range(start, stop) if reader.kind(at) == TokenType.COMMA]
    bounds = zip([start, *(at + 1 for at in commas)], [*commas, stop], strict=True)
    items = [range(*bound) for bound in bounds]
    if all(reader.is_name(at) == (at % 2 == item[0] % 2) for item in items for at in item):
        return [reader.source_text(item[0], item[-1] + 1) for item in items if len(item)]
    return []


def _among_partners(reader: Reader, query: Query, start: int, stop: int) -> str | None:
    """``value IN (query)`` for a query that reads the row around it, whose condition then has the
    comparison, too: a relation around the query could not be left. ``start`` to ``stop``: the
    value. None for other queries, and where a name could be of another relation in there."""
    branch = _rows_read(reader, query)
    items = reader.items(branch) if branch else []
    if branch is None or len(items) != 1 or alias_of(reader, *items[0]) is not None:
        return None
    own = {reader.name_of(source) for source in reader.sources(branch)}
    of_value = _qualifiers(reader, start, stop)
    is_read = _qualifiers(reader, query.start, query.end) - own
    if not is_read or of_value & own or not _is_qualified(reader, start, stop):
        return None
    item, value = reader.source_text(*items[0]), reader.source_text(start, stop)
    at, end = branch.where or (branch.end, branch.end)
    rows = reader.source_text(branch.items[1], at)
    condition = f"({reader.source_text(at + 1, end)}) AND " if at < end else ""
    counted = f"SELECT count(*) {rows} WHERE {condition}"
    return (
        f"CASE WHEN ({counted}({item}) = {value}) > 0 THEN TRUE "
        f"WHEN ({counted}TRUE) = 0 THEN FALSE "
        f"WHEN {value} IS NULL OR ({counted}({item}) IS NULL) > 0 THEN NULL ELSE FALSE END"
    )


def _qualifiers(reader: Reader, start: int, stop: int) -> set[str | None]:
    return {
        reader.name(at)
        for at in range(start, stop)
        if reader.is_name(at)
        and reader.kind(at + 1) == TokenType.DOT
        and reader.kind(at - 1) != TokenType.DOT
    }


def _is_qualified(reader: Reader, start: int, stop: int) -> bool:
    """Whether each column among the tokens stands behind its relation."""
    return all(
        TokenType.DOT in (reader.kind(at - 1), reader.kind(at + 1))
        or reader.opens(at + 1)
        or not reader.is_name(at)
        for at in range(start, stop)
    )


def _among(value: str, query: str, name: str) -> str:
    """``value IN (query)``: NULL where a NULL leaves it open. No name in ``value`` is ``name``,
    which the relation of the query and its column get."""
    counted = f"SELECT count(*) FROM ({query}) AS {name}({name})"
    return (
        f"CASE WHEN ({counted} WHERE {name}.{name} = {value}) > 0 THEN TRUE "
        f"WHEN ({counted}) = 0 THEN FALSE "
        f"WHEN {value} IS NULL OR ({counted} WHERE {name}.{name} IS NULL) > 0 THEN NULL "
        "ELSE FALSE END"
    )


def unused_name(sql: str) -> str:
    """A name that is nowhere in ``sql``.

    >>> unused_name("SELECT found"), unused_name("SELECT 1")
    ('found1', 'found')
    """
    words = sql.lower()
    numbered = (f"found{i}" for i in count(1))
    return next(name for name in chain(["found"], numbered) if name not in words)
