"""Hides lists of one value in texts whose plans Substrait does not carry.

DataFusion 55 makes one list of two (see ``datafusion.substrait.simplifier_bug``), which is mended
in the plan where Substrait carries it: not beside subqueries that read the query around them,
UNNEST, recursive queries, and frames and filters of windows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.subquery_conditions import left_side

_NOT_CARRIED = re.compile(
    r"\b(?:unnest|recursive|exists|lateral|over)\b|\(\s*(?:select|with)\b", re.IGNORECASE
)
_CHAINED = {"=": "OR", "<>": "AND", "!=": "AND"}
"""The words between comparisons of which DataFusion makes a list."""


def is_carried(sql: str) -> bool:
    """Whether Substrait carries the plan of a text for sure."""
    return not _NOT_CARRIED.search(sql)


def repeated_lists(sql: str) -> str:
    """``sql`` with ``nullif(v IN (…), NULL)`` for each list of a value that has several: IN, and
    comparisons that OR or AND makes one."""
    if is_carried(sql):
        return sql
    reader = Reader(sql)
    chains = _chains(reader)
    lists = [*_lists(reader), *(part for chain in chains for part in chain)]
    values = Counter(_value(reader, part) for part in _lists(reader))
    values.update(_value(reader, chain[0]) for chain in chains)
    edits: list[tuple[int, int, str]] = []
    done = 0
    for start, last, at, end in sorted(lists, key=lambda found: (found[0], -found[3])):
        value = reader.source_text(start, last)
        if values[value] > 1 and start >= done:
            done = end
            hidden = f"nullif({value} {reader.source_text(at, end)}, NULL)"
            edits.append((*reader.span(start, end), hidden if last == at else f"(NOT {hidden})"))
    return str(edit(sql, edits).sql) if edits else sql


_Part = tuple[int, int, int, int]
"""Where a value starts and ends, and the rest of what compares it."""


def _value(reader: Reader, part: _Part) -> str:
    return str(reader.source_text(*part[:2]))


def _lists(reader: Reader) -> list[_Part]:
    found = []
    for at in range(1, len(reader.tokens) - 1):
        if reader.word(at) != "IN" or not reader.opens(at + 1):
            continue
        end = reader.close[at + 1] + 1
        last = at - (reader.word(at - 1) == "NOT")
        start = left_side(reader, last)
        if start < last and not reader.is_query(at + 1, end):
            found.append((start, last, at, end))
    return found


def _chains(reader: Reader) -> list[list[_Part]]:
    """The comparisons of one value with literals between the same parentheses: ``v = 1 OR v =
    2``."""
    found: defaultdict[tuple[int, str, str], list[_Part]] = defaultdict(list)
    around: list[int] = [-1]
    for at in range(len(reader.tokens)):
        if at in reader.close:
            around.append(at)
        elif at in reader.open:
            around.pop()
        word = _CHAINED.get(reader.tokens[at].text)
        end = at + 2 + (reader.kind(at + 1) == TokenType.DASH)
        if word and reader.kind(end - 1) in (TokenType.NUMBER, TokenType.STRING):
            start = left_side(reader, at)
            if start < at and word in (reader.word(start - 1), reader.word(end)):
                part = (start, at, at, end)
                found[around[-1], word, _value(reader, part)].append(part)
    return [parts for parts in found.values() if len(parts) > 1]
