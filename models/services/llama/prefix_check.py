"""Determines when a prefix of an answer decides the comparisons of a query.

The check is sound for every answer that a constraint admits and that has the prefix. Text is
compared as in DataFusion: by code points, including trailing blanks. Numbers are compared by value
in the type of the column, and dates and timestamps by their fixed-width text, whose order is that
of time.
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from blendfusion.models.constraints.constraint import MOST_DIGITS
from blendfusion.types import Comparison, ComparisonOperator, Constraint, ConstraintKind

TEXT_KINDS: tuple[ConstraintKind, ...] = ("text", "regex")
NUMBER_KINDS: tuple[ConstraintKind, ...] = ("integer", "number")
_DECIMALS = 6

_LAST = "\U0010ffff"
_TWO_DIGITS = tuple(f"{number:02}" for number in range(60))
_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)?(\.[0-9]*)?")


class _Range(NamedTuple):
    """Answers from ``low`` to ``high``, inclusive, as canonical text."""

    low: str
    high: str


def decided_answer(constraint: Constraint, begun: str) -> str | None:
    """An answer with the same truth for every comparison of ``constraint`` as all answers with the
    prefix ``begun``; None if they differ, or if the constraint has no comparisons.

    ``begun`` is a prefix of a canonical answer. The result is ``begun`` itself for a text or a
    pattern, else a number, date or timestamp with that prefix.

    >>> from blendfusion.types import Comparison
    >>> paris = Constraint("text", decides=(Comparison("=", ("Paris",)),))
    >>> decided_answer(paris, "Par") is None, decided_answer(paris, "Pau")
    (True, 'Pau')
    """
    if not constraint.decides:
        return None
    kind = constraint.kind
    ranges = _ranges(constraint, begun)
    if not ranges:
        return None
    for comparison in constraint.decides:
        if comparison.operator == "like":
            known = _like(comparison.operands[0], begun)
        else:
            known = _common(_truth(kind, comparison, r) for r in ranges)
        if known is None:
            return None
    return begun if kind in TEXT_KINDS else _shortest(kind, begun, ranges)


def _shortest(kind: ConstraintKind, begun: str, ranges: Sequence[_Range]) -> str:
    """A complete answer with the prefix."""
    if kind not in NUMBER_KINDS:  # far from the years that DataFusion has no nanoseconds for
        return max(ranges[0].low, min(ranges[0].high, "2000-01-01T00:00:00"[: len(ranges[0].low)]))
    return begun if begun[-1:].isdigit() else f"{begun}0" if begun.endswith(".") else f"{begun}1"


def _common(truths: Iterable[bool | None]) -> bool | None:
    found = set(truths)
    return found.pop() if len(found) == 1 else None


def _truth(kind: ConstraintKind, comparison: Comparison, among: _Range) -> bool | None:
    """The truth of the comparison for all answers of a range; None if it varies."""
    keys = _keys(kind, among, comparison.operands)
    known = _ordered_truth(comparison.operator, *keys)
    if not isinstance(keys[0], float):
        return known
    # DataFusion orders -0.0 before 0.0 in some places (CASE, a long IN) and equates them in others.
    signed = [(key, math.copysign(1, key)) for key in keys]
    return known if _ordered_truth(comparison.operator, *signed) == known else None


def _ordered_truth(
    operator: ComparisonOperator, low: Any, high: Any, first: Any, last: Any = None
) -> bool | None:
    last = first if last is None else last
    match operator:
        case "=" | "between":
            if first > last or high < first or low > last:
                return False
            return True if first <= low and high <= last else None
        case "<":
            return True if high < first else False if low >= first else None
        case "<=":
            return True if high <= first else False if low > first else None
        case ">":
            return True if low > first else False if high <= first else None
        case _:  # >=
            return True if low >= first else False if high < first else None


def _keys(kind: ConstraintKind, among: _Range, literals: Sequence[str]) -> list[Any]:
    """The keys that DataFusion compares, the ends of the range first: texts, or numbers of the
    wider type."""
    if kind not in NUMBER_KINDS:
        return [*among, *literals]
    if kind == "integer" and all(map(_WHOLE.fullmatch, literals)):
        return [int(text) for text in (*among, *literals)]
    return [
        *(_double(text, whole=kind == "integer") for text in among),
        *(_double(text, whole=_WHOLE.fullmatch(text) is not None) for text in literals),
    ]


def _double(text: str, *, whole: bool) -> float:
    """The double of a number. ``whole``: the number was an integer, which has no negative zero."""
    return float(int(text)) if whole else float(text)


# -- possible continuations of a prefix ---------------------------------------------------------


def _ranges(constraint: Constraint, begun: str) -> list[_Range]:
    """All answers with the prefix, in ranges; none if no answer has it."""
    match constraint.kind:
        case "text" | "regex":
            longest = max(len(o) for c in constraint.decides for o in c.operands)
            return [_Range(begun, begun + _LAST * (longest + 1))]
        case "integer" | "number":
            return _numbers(constraint.kind, begun)
        case "date":
            return _dates(begun)
        case "timestamp":
            return _timestamps(begun)
        case _:
            return []


def _numbers(kind: ConstraintKind, begun: str) -> list[_Range]:
    found = _NUMBER.fullmatch(begun)
    if not found:
        return []
    sign, digits, point = found[1], found[2] or "", found[3]
    fraction = "" if kind == "integer" else f".{'9' * _DECIMALS}"
    if point is not None:
        rest = "9" * (_DECIMALS + 1 - len(point))
        low, high = digits + point, digits + point + rest
        ranges = [_Range(low + "0" if low.endswith(".") else low, high)]
    elif digits == "0":
        ranges = [_Range("0", f"0{fraction}")]
    elif not digits:
        ranges = [_Range("0", "9" * MOST_DIGITS[kind] + fraction)]
    else:
        ranges = [
            _Range(digits + "0" * more, digits + "9" * more + fraction)
            for more in range(MOST_DIGITS[kind] - len(digits) + 1)
        ]
    if not begun:
        top = ranges[0].high
        return [_Range(f"-{top}", top)]
    return [_Range(f"-{high}", f"-{low}") for low, high in ranges] if sign else ranges


def _dates(begun: str) -> list[_Range]:
    years = _years(begun[:4])
    months = _beginning(begun[5:7], _TWO_DIGITS[1:13])
    if not years or not months:
        return []
    ends = []
    for year, month, pick in ((years[0], months[0], 0), (years[-1], months[-1], -1)):
        length = calendar.monthrange(int(year), int(month))[1]
        days = _beginning(begun[8:10], _TWO_DIGITS[1 : length + 1])
        if not days:
            return []
        ends.append(f"{year}-{month}-{days[pick]}")
    return [_Range(*ends)] if ends[0].startswith(begun) else []


def _years(begun: str) -> list[str]:
    """The first and the last year with this beginning."""
    first, last = max("0001", begun.ljust(4, "0")), begun.ljust(4, "9")
    return [first, last] if last.isdecimal() and first.startswith(begun) else []


def _timestamps(begun: str) -> list[_Range]:
    dates = _dates(begun[:10])
    fields = [
        _beginning(begun[start : start + 2], _TWO_DIGITS[: last + 1])
        for start, last in ((11, 23), (14, 59), (17, 59))
    ]
    if not dates or not all(fields):
        return []
    low = f"{dates[0].low}T{':'.join(field[0] for field in fields)}"
    high = f"{dates[0].high}T{':'.join(field[-1] for field in fields)}"
    return [_Range(low, high)] if low.startswith(begun) else []


def _beginning(begun: str, among: Iterable[str]) -> list[str]:
    return [text for text in among if text.startswith(begun)]


def _like(pattern: str, begun: str) -> bool | None:
    """Whether all texts with the prefix match a LIKE pattern without escapes; None if that
    varies."""
    places = _behind_any(pattern, {0})
    for character in begun:
        places = _behind_any(
            pattern,
            {
                place if pattern[place] == "%" else place + 1
                for place in places
                if place < len(pattern) and pattern[place] in ("%", "_", character)
            },
        )
    if not places:
        return False
    return True if pattern.endswith("%") and len(pattern) in places else None


def _behind_any(pattern: str, places: set[int]) -> set[int]:
    """The places in a pattern, extended by those that a ``%`` with an empty match reaches."""
    found = set(places)
    for place in sorted(places):
        while pattern[place : place + 1] == "%":
            place += 1
            found.add(place)
    return found
