"""Gives a value to columns that SQLite allows beside aggregates: ``SELECT name, MAX(age) FROM t``.

SQLite takes that of any row of the group; beside a single MAX or MIN that of the row which has it.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader, Select
from blendfusion.language.query_text.rewriter import Weaver
from blendfusion.language.query_text.source_map import Translation

_EXTREMES = {"MAX": "DESC", "MIN": "ASC"}
_AGGREGATES = (*_EXTREMES, "COUNT", "SUM", "TOTAL", "AVG", "STRING_AGG", "ARRAY_AGG")
_SETS = ("ALL", "ROLLUP", "CUBE", "GROUPING")
_BEHIND_GROUP = ("HAVING", "WINDOW", "QUALIFY")


def with_values(reader: Reader) -> Translation:
    """A text with an aggregate in the place of each item of a select list that is a column, is not
    in GROUP BY, and stands beside an aggregate or over a GROUP BY."""
    weaver = Weaver(reader)
    groups = not {"GROUP", *_AGGREGATES}.isdisjoint(reader.words)
    for _, _, select, _ in reader.selects if groups else ():
        grouped = _group_names(reader, select)
        aggregates = [at for at in range(*select.items) if _is_aggregate(reader, at, select)]
        if grouped is None or not (grouped or aggregates):
            continue
        for start, stop in reader.items(select):
            end = reader.column_end(start)
            if end is None or reader.kind(end - 1) == TokenType.STAR or end < stop - 2:
                continue
            if reader.name(end - 1) in grouped or reader.name(stop - 1) in grouped:
                continue
            alias = "" if end < stop else f" AS {reader.source_text(end - 1, end)}"
            first = f"first_value({reader.source_text(start, end)}"
            weaver.rewrite(start, end, first, *_row(reader, aggregates), f"){alias}")
    return weaver.whole()


def _group_names(reader: Reader, select: Select) -> set[str] | None:
    """The names in a SELECT's GROUP BY; None where it may have others."""
    at = select.where[1] if select.where else select.items[1]
    while at < select.end and reader.word(at) != "GROUP":
        at = reader.close.get(at, at) + 1
    stop = at
    while stop < select.end and reader.word(stop) not in _BEHIND_GROUP:
        stop = reader.close.get(stop, stop) + 1
    parts = reader.parts(at + 1, stop)
    if any(reader.kind(a) == TokenType.NUMBER or reader.word(a) in _SETS for a, _ in parts):
        return None
    return {reader.name(b - 1) if reader.column_end(a) == b else "" for a, b in parts}


def _is_aggregate(reader: Reader, at: int, select: Select) -> bool:
    """An aggregate of ``select`` is called at ``at``, not over a window."""
    if reader.word(at) not in _AGGREGATES or not reader.opens(at + 1):
        return False
    windowed = reader.word(reader.close[at + 1] + 1) in ("OVER", "FILTER")
    return not windowed and reader.around(at)[0][0] is select


def _row(reader: Reader, aggregates: list[int]) -> list[str | tuple[int, int]]:
    """The order that has the row of the only MAX or MIN first; nothing beside other aggregates."""
    if len(aggregates) != 1 or reader.word(aggregates[0]) not in _EXTREMES:
        return []
    at = aggregates[0]
    value = at + 2 + (reader.word(at + 2) == "DISTINCT"), reader.close[at + 1]
    return [" ORDER BY ", value, f" {_EXTREMES[reader.word(at)]} NULLS LAST"]
