"""Hides lists of one value in texts whose plans Substrait does not carry.

DataFusion 55 makes one list of two (see ``datafusion.substrait.simplifier_bug``), which is mended
in the plan where Substrait carries it: not beside subqueries that read the query around them,
UNNEST, recursive queries, and frames and filters of windows."""

from __future__ import annotations

import re
from collections import Counter

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.subquery_conditions import left_side

_NOT_CARRIED = re.compile(
    r"\b(?:unnest|recursive|exists|lateral|over)\b|\(\s*(?:select|with)\b", re.IGNORECASE
)


def is_carried(sql: str) -> bool:
    """Whether Substrait carries the plan of a text for sure."""
    return not _NOT_CARRIED.search(sql)


def repeated_lists(sql: str) -> str:
    """``sql`` with ``nullif(v IN (…), NULL)`` for each list of a value that has several."""
    if is_carried(sql):
        return sql
    reader = Reader(sql)
    lists = []
    for at in range(1, len(reader.tokens) - 1):
        if reader.word(at) != "IN" or not reader.opens(at + 1):
            continue
        end = reader.close[at + 1] + 1
        last = at - (reader.word(at - 1) == "NOT")
        start = left_side(reader, last)
        if start < last and not reader.is_query(at + 1, end):
            lists.append((start, last, at, end))
    values = Counter(reader.source_text(start, last) for start, last, *_ in lists)
    edits: list[tuple[int, int, str]] = []
    done = 0
    for start, last, at, end in sorted(lists, key=lambda found: (found[0], -found[3])):
        value = reader.source_text(start, last)
        if values[value] > 1 and start >= done:
            done = end
            hidden = f"nullif({value} {reader.source_text(at, end)}, NULL)"
            edits.append((*reader.span(start, end), hidden if last == at else f"(NOT {hidden})"))
    return str(edit(sql, edits).sql) if edits else sql
