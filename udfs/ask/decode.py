"""Decodes canonical answers to Arrow arrays of the declared type."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

_TRUTH = {"true": True, "false": False}


def decode(answers: Sequence[str | None], to: pa.DataType) -> pa.Array:
    """One value an answer, in order; None stays NULL.

    Answers are canonical text (see ``blendfusion.types.Constraint``): a boolean is ``true``, a date
    ISO 8601, a list a JSON array, a struct or a map a JSON object.

    >>> decode(["3", None], pa.int64()).to_pylist()
    [3, None]
    """
    return pa.array([value(a, to) for a in answers], to)


def value(text: str | None, to: pa.DataType) -> object:
    """One answer as the Python value that Arrow takes for the type; None stays None."""
    if text is None:
        return None
    if pa.types.is_boolean(to):
        return _TRUTH[text]
    if pa.types.is_integer(to):
        return int(text)
    if pa.types.is_floating(to):
        return float(text)
    if pa.types.is_decimal(to):
        return Decimal(text)
    if pa.types.is_date(to):
        return datetime.date.fromisoformat(text)
    if pa.types.is_timestamp(to):
        return datetime.datetime.fromisoformat(text)
    if pa.types.is_map(to):
        return list(json.loads(text).items())
    if pa.types.is_list(to) or pa.types.is_struct(to):
        return part_value(json.loads(text), to)
    return text


def part_value(part: Any, to: pa.DataType) -> object:
    """The value of a JSON array or object, or of what stands in one."""
    if isinstance(part, list):
        return [part_value(element, to.value_type) for element in part]
    if isinstance(part, dict):
        return {field.name: part_value(part[field.name], field.type) for field in to}
    if isinstance(part, str):
        return value(part, to)
    if pa.types.is_decimal(to) and part is not None:
        return Decimal(json.dumps(part))
    return json.dumps(part) if pa.types.is_string(to) and part is not None else part
