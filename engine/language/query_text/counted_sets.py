"""Counts equal rows in EXCEPT ALL and INTERSECT ALL, as SQL has it.

In DataFusion 55, ``a EXCEPT ALL b`` drops each row of ``a`` that ``b`` has at all, and ``a
INTERSECT ALL b`` keeps all copies. Equal rows are numbered on both sides here, and then compared
with their numbers: the second copy in ``a`` needs a second one in ``b``.

No two rows of a numbered side are equal. So the operator keeps its ALL, which saves a DISTINCT:
DataFusion 55 fails on one of a window below a LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.lateral import Columns
from blendfusion.language.query_text.query_tree import Query, Reader, rewrite_in_rounds
from blendfusion.udfs.declare.arguments import quoted_name

_OPERATORS = ("UNION", "EXCEPT", "INTERSECT")
_TAIL = ("ORDER", "LIMIT", "OFFSET", "FETCH")
_NUMBERED = "/* numbered */"
"""Stands between the words of an operator whose sides are numbered."""


class _Operation(NamedTuple):
    """An operator with ALL in a query: its word, and the tokens of its sides."""

    word: str
    start: int
    at: int
    right: int
    end: int


def counted_sets(sql: str, columns: Columns, warn: Callable[[str], None]) -> str:
    """``sql`` with these operators rewritten. ``warn`` gets a sentence about one whose sides cannot
    be planned by themselves: it stays as it is."""
    reader = Reader(rewrite_in_rounds(sql, lambda reader: _rewrite_one(reader, columns)))
    for word in dict.fromkeys(_remaining(reader)):
        warn(
            f"{word} ALL does not count equal rows here: its sides read tables outside of it, repeat "
            "a column's name, or are no SELECT. A row of the other side counts as often as needed. "
            "Number equal rows with row_number() on both sides, and write "
            f"{word} without ALL."
        )
    return reader.text


def _rewrite_one(reader: Reader, columns: Columns) -> str | None:
    """The text with one operator rewritten; None if there is none."""
    for query, scope in reader.scopes():
        for found in _operations(reader, query):
            common = scope.text(reader)
            names = columns(common, f"({_side(reader, found.start, found.at)}\n)")
            if names is None or len(names) > len({*names}):
                continue
            text = _number(reader, found, names)
            if columns(common, f"({text})") is not None:
                return reader.edit([(found.start, found.end, text)])
    return None


def _remaining(reader: Reader) -> Iterator[str]:
    """The words of such operators."""
    for at in range(len(reader.tokens)):
        if reader.word(at) in _OPERATORS[1:] and _counts(reader, at):
            yield reader.word(at)


def _counts(reader: Reader, at: int) -> bool:
    """Whether an operator has ALL and sides that are not numbered yet."""
    if reader.word(at + 1) != "ALL":
        return False
    between = reader.text[reader.tokens[at].end + 1 : reader.tokens[at + 1].start]
    return _NUMBERED not in between


def _number(reader: Reader, found: _Operation, names: Sequence[str]) -> str:
    listed = ", ".join(f"c{i}" for i in range(len(names)))
    shown = ", ".join(f"c{i} AS {quoted_name(name)}" for i, name in enumerate(names))
    sides = (
        f"SELECT *, row_number() OVER (PARTITION BY {listed}) AS n "
        f"FROM ({_side(reader, *side)}\n) AS {name}({listed})"
        for name, side in zip(
            "lr", ((found.start, found.at), (found.right, found.end)), strict=True
        )
    )
    return f"SELECT {shown} FROM ({f' {found.word} {_NUMBERED} ALL '.join(sides)}) AS e"


def _side(reader: Reader, start: int, end: int) -> str:
    """The text of a side without brackets around all of it: DataFusion has no ``((SELECT …)) AS
    t``."""
    while reader.opens(start) and reader.close.get(start) == end - 1:
        start, end = start + 1, end - 1
    return reader.source_text(start, end)


def _operations(reader: Reader, query: Query) -> Iterator[_Operation]:
    """The operators with ALL of a query whose sides have none, the ones that bind closer first."""
    start = query.common[-1].end if query.common else query.start
    operands, operators = [start], []
    at = start
    while at < query.end and reader.word(at) not in _TAIL:
        if reader.word(at) in _OPERATORS and not _is_of_star(reader, at):
            operators.append(at)
            operands.append(_operand(reader, at))
        at = reader.close.get(at, at) + 1
    ends = [*operators, at]
    words = [reader.word(operator) for operator in operators]
    counted = [_counts(reader, operator) for operator in operators]
    for word in ("INTERSECT", "EXCEPT"):
        for i, operator in enumerate(operators):
            if words[i] != word or not counted[i]:
                continue
            first, last = (0, i + 1)
            if word == "INTERSECT":
                first = next((j + 1 for j in range(i - 1, -1, -1) if words[j] != word), 0)
            else:
                last += next(
                    (j for j, w in enumerate(words[i + 1 :]) if w == "UNION" or w == word),
                    len(words) - i - 1,
                )
            yield _Operation(word, operands[first], operator, operands[i + 1], ends[last])


def _operand(reader: Reader, operator: int) -> int:
    at = operator + 1
    while reader.word(at) in ("ALL", "DISTINCT", "BY", "NAME"):
        at += 1
    return at


def _is_of_star(reader: Reader, at: int) -> bool:
    """Whether EXCEPT belongs to ``* EXCEPT (a)``."""
    return reader.kind(at - 1) == TokenType.STAR and reader.opens(at + 1)
