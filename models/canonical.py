"""The canonical text of a Python value: the form in which answers are exchanged and checked."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

from blendfusion.types import Constraint

Value: TypeAlias = (
    "bool | int | float | str | Decimal | datetime.date | datetime.datetime | Sequence[Value]"
)
"""What a person's code may answer with; see ``Constraint`` for the text it becomes."""

_BARE_ITEMS = ("integer", "number")
_DECIMALS = 6
"""Digits after the point that a canonical number may have."""


def canonical(value: Value, constraint: Constraint) -> str:
    """The text of ``value`` in the form that ``constraint`` asks for, where there is one.

    Total, and checks nothing: a value that does not fit keeps its plain text, and ``holds`` then
    refuses it. A number loses what lies behind its sixth decimal.

    >>> canonical(True, Constraint("boolean")), canonical(3.0, Constraint("integer"))
    ('true', '3')
    >>> canonical(["a", "b"], Constraint("list", item=Constraint()))
    '["a", "b"]'
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        return _number(value)
    if isinstance(value, datetime.date):
        return _moment(value, constraint)
    if isinstance(value, Sequence):
        return _list(value, constraint.item or Constraint())
    return str(value)


def _number(value: float | Decimal) -> str:
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
    """A JSON array: bare numbers for numeric items, strings for every other kind."""
    shown = []
    for element in elements:
        text = canonical(element, item)
        bare = item.kind in _BARE_ITEMS and not isinstance(element, bool)
        shown.append(text if bare else json.dumps(text, ensure_ascii=False))
    return f"[{', '.join(shown)}]"
