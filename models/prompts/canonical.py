"""Converts Python values to canonical text: the form in which answers are exchanged and checked."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from blendfusion.models.constraints.constraint import holds, points
from blendfusion.types import Constraint

Value: TypeAlias = (
    "bool | int | float | str | Decimal | datetime.date | datetime.datetime | Sequence[Value]"
    " | Mapping[str, Any] | Mapping[int, float] | Mapping[bool, float]"
)
"""The values that a Python function may answer; see ``Constraint`` for their text. A mapping holds
the fields of a struct, or the odds of a score's points or of a closed set's options."""

SAME = "Are both the same thing, perhaps written differently?"
"""The question about two names."""
_BARE_ITEMS = ("integer", "number")
_DECIMALS = 6
"""Maximum digits after the point of a canonical number."""
_MOST_DIGITS = 400
"""Maximum digits before the point that are written out; no float has more."""
_HUGE = 10**_MOST_DIGITS


def canonical(value: Value, constraint: Constraint) -> str:
    """The text of ``value`` in the form of ``constraint``, if possible.

    Total and without checks: an invalid value keeps its plain text, which ``holds`` then rejects. A
    number is cut after its sixth decimal.

    >>> canonical(True, Constraint("boolean")), canonical(3.0, Constraint("integer"))
    ('true', '3')
    >>> canonical(["a", "b"], Constraint("list", item=Constraint()))
    '["a", "b"]'
    >>> canonical({7: 0.5, 8: 0.5}, Constraint("score", scale=(0, 10)))
    '7.5'
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < _HUGE else f"an integer of {value.bit_length():,} bits"
    if isinstance(value, float | Decimal):
        return _number(value)
    if isinstance(value, datetime.date):
        return _moment(value, constraint)
    if isinstance(value, Mapping):
        return (
            _score(value, constraint) if constraint.kind == "score" else _struct(value, constraint)
        )
    if isinstance(value, Sequence):
        return _list(value, constraint.item or Constraint())
    return str(value)


def _number(value: float | Decimal) -> str:
    if (
        isinstance(value, Decimal)
        and value.is_finite()
        and value
        and value.adjusted() > _MOST_DIGITS
    ):
        # A few characters may denote a gigabyte of digits, which no constraint admits.
        return str(value) if len(value.as_tuple().digits) <= _MOST_DIGITS else "a huge number"
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < -_MOST_DIGITS:
        return "0"
    text = format(value, f".{_DECIMALS}f")
    if "." not in text:  # inf and nan, which no constraint admits
        return text
    text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _moment(value: datetime.date, constraint: Constraint) -> str:
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return (value.date() if constraint.kind == "date" and midnight else value).isoformat()
    if constraint.kind == "timestamp":
        return f"{value.isoformat()}T00:00:00"
    return value.isoformat()


def _list(elements: Sequence[Value], item: Constraint) -> str:
    """A JSON array: bare numbers for numeric items, objects for structs, and strings for every
    other kind."""
    shown = []
    for element in elements:
        text = canonical(element, item)
        bare = isinstance(element, Mapping) or (
            item.kind in _BARE_ITEMS and not isinstance(element, bool)
        )
        shown.append(text if bare else json.dumps(text, ensure_ascii=False))
    return f"[{', '.join(shown)}]"


def _struct(members: Mapping[Any, Any], constraint: Constraint) -> str:
    """A JSON object: the constraint's fields in their order, null for missing ones, then unknown
    ones."""
    known = {f.name: f.constraint for f in constraint.fields}
    names = [*known, *(name for name in members if name not in known)]
    shown = [
        f"{json.dumps(str(name), ensure_ascii=False)}: "
        f"{_member(members.get(name), known.get(name, Constraint()))}"
        for name in names
    ]
    return f"{{{', '.join(shown)}}}"


def _member(value: Value | None, constraint: Constraint) -> str:
    if value is None:
        return "null"
    text = canonical(value, constraint)
    nested = isinstance(value, Mapping | Sequence) and not isinstance(value, str)
    bare = constraint.kind in (*_BARE_ITEMS, "boolean") and holds(constraint, text)
    return text if nested or bare else json.dumps(text, ensure_ascii=False)


def _score(odds: Mapping[Any, Any], constraint: Constraint) -> str:
    """The expected value under odds of the scale's points, which need not add up to one."""
    scale = points(constraint)
    if not all(str(point) in scale and _is_share(share) for point, share in odds.items()):
        return str(odds)
    total = sum(odds.values())
    return _number(sum(int(point) * p for point, p in odds.items()) / total) if total else str(odds)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < math.inf
