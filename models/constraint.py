"""A constraint as a regular expression, a closed set, a JSON schema and a check: total functions.

The four views agree: whatever the regular expression or the schema admits, ``holds`` accepts,
calendar included: the regular expression of a date knows the lengths of months and leap years.
"""

from __future__ import annotations

import datetime
import json
import re
from typing import TypeAlias

from blendfusion.types import Constraint

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

BOOLEAN = ("true", "false")

_DATE = (
    r"((19|20)[0-9]{2}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
    r"|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"|((19|20)(0[48]|[2468][048]|[13579][26])|2000)-02-29)"
)
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_PATTERNS = {
    "integer": r"-?(0|[1-9][0-9]{0,17})",
    "number": r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?",
    "date": _DATE,
    "timestamp": f"{_DATE}T{_TIME}",
}
MAX_LIST_ITEMS = 16
TEXT_PATTERN = r"[^\n]{1,400}"
_JSON_STRING = r'"[^"\\\n\x00-\x1f]{1,100}"'


def closed_set(constraint: Constraint) -> tuple[str, ...] | None:
    """The canonical answers if there are finitely many given by the constraint itself, else None."""
    if constraint.kind == "boolean":
        return BOOLEAN
    if constraint.kind == "choice":
        return constraint.options
    return None


def regex_of(constraint: Constraint) -> str:
    """A regular expression that admits the canonical answers, for a whole match.

    Only syntax that the regex engines of Rust, Python and llguidance share.

    >>> regex_of(Constraint("boolean"))
    'true|false'
    """
    options = closed_set(constraint)
    if options is not None:
        return "|".join(re.escape(option) for option in options)
    if constraint.kind == "regex":
        assert constraint.pattern is not None
        return constraint.pattern
    if constraint.kind == "list":
        return _list_regex(constraint)
    return _PATTERNS.get(constraint.kind, TEXT_PATTERN)


def most_items(constraint: Constraint) -> int:
    """How many elements a list has at most."""
    if constraint.max_items is not None:
        return constraint.max_items
    return max(MAX_LIST_ITEMS, constraint.min_items)


def _list_regex(constraint: Constraint) -> str:
    item = f"({_item_regex(constraint.item or Constraint())})"
    least, most = constraint.min_items, most_items(constraint)
    if not most:
        return r"\[\]"
    filled = rf"{item}(, {item}){{{max(0, least - 1)},{most - 1}}}"
    return rf"\[{filled}\]" if least else rf"\[({filled})?\]"


def _item_regex(item: Constraint) -> str:
    if item.kind in ("integer", "number"):
        return _PATTERNS[item.kind]
    if item.kind == "text":
        return _JSON_STRING
    options = closed_set(item)
    if options is not None:
        return "|".join(re.escape(json.dumps(option, ensure_ascii=False)) for option in options)
    return f'"({regex_of(item)})"'


def schema_of(constraint: Constraint) -> dict[str, Json]:
    """A JSON schema for the canonical answer's value, for servers that take schemas."""
    kind = constraint.kind
    if kind == "boolean":
        return {"type": "boolean"}
    if kind == "integer":
        return {"type": "integer"}
    if kind == "number":
        return {"type": "number"}
    if kind == "choice":
        return {"type": "string", "enum": list(constraint.options)}
    if kind == "list":
        return {
            "type": "array",
            "items": schema_of(constraint.item or Constraint()),
            **({"minItems": constraint.min_items} if constraint.min_items else {}),
            "maxItems": most_items(constraint),
        }
    if kind == "text":
        return {"type": "string"}
    return {"type": "string", "pattern": f"^({regex_of(constraint)})$"}


def holds(constraint: Constraint, text: str) -> bool:
    """True if ``text`` is a canonical answer under ``constraint``, calendar included.

    >>> holds(Constraint("date"), "2024-02-31")
    False
    """
    options = closed_set(constraint)
    if options is not None:
        return text in options
    if constraint.kind == "text":
        return True
    if constraint.kind == "list":
        return _holds_list(constraint, text)
    if re.fullmatch(regex_of(constraint), text) is None:
        return False
    return constraint.kind not in ("date", "timestamp") or _in_calendar(text)


def _holds_list(constraint: Constraint, text: str) -> bool:
    try:
        elements = json.loads(text)
    except ValueError:
        return False
    item = constraint.item or Constraint()
    return (
        isinstance(elements, list)
        and len(elements) >= constraint.min_items
        and (constraint.max_items is None or len(elements) <= constraint.max_items)
        and all(
            isinstance(element, str | int | float) and holds(item, _canonical(element))
            for element in elements
        )
    )


def _canonical(element: str | int | float) -> str:
    return element if isinstance(element, str) else json.dumps(element)


def _in_calendar(text: str) -> bool:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
