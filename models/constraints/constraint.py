"""A constraint as a regular expression, a closed set, a JSON schema and a check: total functions.

The four views agree: ``holds`` accepts everything that the regular expression or the schema admits.
This includes the calendar: the regular expression of a date covers the lengths of months and leap
years.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from typing import TypeAlias, cast

from blendfusion.models.constraints.regex import matches
from blendfusion.types import Answer, Constraint, ConstraintKind, StructField, Usage

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

BOOLEAN = ("true", "false")
MOST_DIGITS: Mapping[ConstraintKind, int] = {"integer": 18, "number": 15}
"""Maximum digits of an answer before the point."""
_MOST_DECIMALS = 6
_MOST_ROUNDING = 1e-6
"""The most by which probabilities that were rounded may miss one, together."""

_YEAR = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_FOURTH = "(0[48]|[2468][048]|[13579][26])"
"""Two digits of a multiple of four, but 00."""
_DATE = (
    rf"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
    r"|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    rf"|([0-9]{{2}}{_FOURTH}|{_FOURTH}00)-02-29)"
)
TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
"""The pattern of a time of day."""
_PATTERNS = {
    "integer": rf"-?(0|[1-9][0-9]{{0,{MOST_DIGITS['integer'] - 1}}})",
    "number": rf"-?(0|[1-9][0-9]{{0,{MOST_DIGITS['number'] - 1}}})(\.[0-9]{{1,{_MOST_DECIMALS}}})?",
    "date": _DATE,
    "timestamp": f"{_DATE}T{TIME}",
}
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,18})")
"""Every BIGINT: one digit more than a model is let write, as not all numbers of that many are one.
"""
MAX_LIST_ITEMS = 16
TEXT_PATTERN = r"[^\n]{1,400}"
_JSON_STRING = r'"[^"\\\n\x00-\x1f]{1,100}"'
_JSON_TEXT = r'"[^"\\\n\x00-\x1f]{1,400}"'


def closed_set(constraint: Constraint) -> tuple[str, ...] | None:
    """The canonical answers if the constraint itself defines finitely many, else None."""
    if constraint.kind == "boolean":
        return BOOLEAN
    if constraint.kind == "choice":
        return constraint.options
    return None


def answer_without_model(constraint: Constraint) -> Answer | None:
    """The answer if the constraint leaves no choice, else None."""
    options = closed_set(constraint)
    if options is None or len(options) > 1:
        return None
    if not options:
        return Answer.failed("there are no options to choose from", Usage(values=1, failed=1))
    return Answer(options[0], logprob=0.0, usage=Usage(values=1))


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
    if constraint.kind == "struct":
        return _struct_regex(constraint)
    if constraint.kind == "score":
        return _score_regex(constraint)
    if constraint.digits is not None:
        return _decimal_regex(*constraint.digits)
    return _PATTERNS.get(constraint.kind, TEXT_PATTERN)


def points(constraint: Constraint) -> tuple[str, ...]:
    """The whole numbers of a score's scale, ascending; none for any other kind.

    >>> points(Constraint("score", scale=(-1, 1)))
    ('-1', '0', '1')
    """
    if constraint.scale is None:
        return ()
    low, high = constraint.scale
    return tuple(map(str, range(low, high + 1)))


def most_items(constraint: Constraint) -> int:
    """The maximum number of items of a list."""
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


def _struct_regex(constraint: Constraint) -> str:
    members = [
        f"{re.escape(json.dumps(f.name, ensure_ascii=False))}: (({_member_regex(f.constraint)})|null)"
        for f in constraint.fields
    ]
    return rf"\{{{', '.join(members)}\}}"


def _member_regex(member: Constraint) -> str:
    if member.kind == "boolean":
        return "|".join(BOOLEAN)
    if member.kind == "text":
        return _JSON_TEXT
    return _list_regex(member) if member.kind == "list" else _item_regex(member)


def _score_regex(constraint: Constraint) -> str:
    """Every point, and numbers between two points with up to six decimals."""
    assert constraint.scale is not None
    low, high = constraint.scale
    between = [f"-{-n}" for n in range(low + 1, min(high, 0) + 1)]
    between += [str(n) for n in range(max(low, 0), high)]
    return f"{'|'.join(points(constraint))}|({'|'.join(between)})\\.[0-9]{{1,6}}"


def _decimal_regex(precision: int, scale: int) -> str:
    """Numbers of a decimal type, as far as a number may have so many digits."""
    whole = min(precision - scale, MOST_DIGITS["number"])
    before = rf"(0|[1-9][0-9]{{0,{whole - 1}}})" if whole else "0"
    return rf"-?{before}(\.[0-9]{{1,{min(scale, _MOST_DECIMALS)}}})?" if scale else f"-?{before}"


def _item_regex(item: Constraint) -> str:
    if item.kind == "struct":
        return _struct_regex(item)
    if item.kind in ("integer", "number"):
        return regex_of(item)
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
    if kind == "struct":
        return {
            "type": "object",
            "properties": {f.name: _member_schema(f) for f in constraint.fields},
            "required": [f.name for f in constraint.fields],
            "additionalProperties": False,
        }
    if constraint.scale is not None:
        low, high = constraint.scale
        return {"type": "number", "minimum": low, "maximum": high}
    if kind == "text":
        return {"type": "string"}
    return {"type": "string", "pattern": f"^({regex_of(constraint)})$"}


def _member_schema(member: StructField) -> dict[str, Json]:
    schema: dict[str, Json] = {"description": member.description} if member.description else {}
    return {**schema, "anyOf": [schema_of(member.constraint), {"type": "null"}]}


def holds(constraint: Constraint, text: str) -> bool:
    """True if ``text`` is a canonical answer under ``constraint``, calendar included.

    >>> holds(Constraint("date"), "2024-02-31")
    False
    """
    if constraint.distribution:
        return is_distribution(constraint, text)
    options = closed_set(constraint)
    if options is not None:
        return text in options
    if constraint.kind == "text":
        return _is_encodable(text)
    if constraint.kind in ("list", "struct"):
        try:
            return _fits(constraint, json.loads(text, object_pairs_hook=_object))
        except (ValueError, RecursionError):
            return False
    if constraint.kind == "regex":
        return matches(regex_of(constraint), text)
    if constraint.kind == "integer":
        return _WHOLE.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63
    if re.fullmatch(regex_of(constraint), text) is None:
        return False
    return constraint.kind not in ("date", "timestamp") or _in_calendar(text)


def is_distribution(constraint: Constraint, text: str) -> bool:
    """Whether ``text`` is a JSON object of probabilities, one for each option of a closed set or
    point of a scale, which add up to one.

    >>> is_distribution(Constraint("choice", options=("a", "b")), '{"a": 0.25, "b": 0.75}')
    True
    """
    try:
        stated = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return False
    if not isinstance(stated, dict) or tuple(stated) != possible_answers(constraint):
        return False
    shares = [share for share in stated.values() if type(share) in (int, float)]
    in_range = len(shares) == len(stated) and all(0 <= share <= 1 for share in shares)
    return in_range and abs(sum(shares) - 1) < _MOST_ROUNDING


def possible_answers(constraint: Constraint) -> tuple[str, ...]:
    """The options of a closed set, or the points of a scale, in their order; none of others."""
    return closed_set(constraint) or points(constraint)


def _is_encodable(text: str) -> bool:
    """False for half of a surrogate pair, which only Python's text may contain."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits(constraint: Constraint, value: Json) -> bool:
    """Whether a list, a struct, or a part of one is valid."""
    if constraint.kind == "struct":
        members = [(f.name, f.constraint) for f in constraint.fields]
        return (
            isinstance(value, dict)
            and list(value) == [name for name, _ in members]
            and all(value[name] is None or _fits(member, value[name]) for name, member in members)
        )
    if constraint.kind == "list":
        item = constraint.item or Constraint()
        return (
            isinstance(value, list)
            and len(value) >= constraint.min_items
            and (constraint.max_items is None or len(value) <= constraint.max_items)
            and all(_fits(item, element) for element in value)
        )
    return isinstance(value, str | int | float) and holds(constraint, _canonical(value))


def fitting(text: str, constraint: Constraint) -> str | None:
    """The JSON object ``text`` with null for each field that does not fit a struct's constraint,
    and without unknown ones. None if no known field is there, or none fits of those that have a
    value.

    >>> from blendfusion.types import StructField
    >>> film = Constraint("struct", fields=tuple(StructField(n, Constraint("integer")) for n in "ab"))
    >>> fitting('{"a": 1, "b": "many"}', film)
    '{"a": 1, "b": null}'
    """
    try:
        stated = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    if holds(constraint, text):
        return text
    members = {f.name: f.constraint for f in constraint.fields}
    if not isinstance(stated, dict) or not members.keys() & stated.keys():
        return None
    kept = {name: _fitting_member(stated.get(name), member) for name, member in members.items()}
    if all(value is None for value in kept.values()) and any(
        value is not None for value in stated.values()
    ):
        return None
    return json.dumps(kept, ensure_ascii=False)


def _fitting_member(value: Json, member: Constraint) -> Json:
    if isinstance(value, dict) and member.kind == "struct":
        inner = fitting(json.dumps(value), member)
        return None if inner is None else cast("Json", json.loads(inner))
    return value if value is not None and _fits(member, value) else None


def _object(members: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a field is given twice")
    return found


def _canonical(value: str | int | float) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _in_calendar(text: str) -> bool:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
