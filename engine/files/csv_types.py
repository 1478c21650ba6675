"""The types of the columns of CSV files, from many of their rows: as DataFusion finds them, but
from whole records, wherever a line breaks, and only those that each value can be read as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_ZONE = r"(Z|[+-]([01]\d|2[0-3]):?([0-5]\d)?)"
_STAMP = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_FRACTIONS = {"s": "", "ms": r"\.\d{1,3}", "us": r"\.\d{4,6}", "ns": r"\.\d{7,9}"}
_ZONED = {f"{unit} of a zone": unit for unit in _FRACTIONS}
_DIGITS = r"(-\d+|0|[1-9]\d*)"
"""A whole number. Digits behind a zero, as in a code of the post or a telephone number, are a text,
as in DuckDB."""
_KINDS: Mapping[str, str] = {
    "boolean": r"(?i)^(true|false)$",
    "whole": rf"^{_DIGITS}$",
    "number": rf"^((-?|{_DIGITS})\.\d+|{_DIGITS}\.\d*)([eE][-+]?\d+)?$|^{_DIGITS}[eE][-+]?\d+$"
    "|^(NaN|nan|inf|-inf)$",
    "date": r"^\d{4}-\d\d-\d\d$",
    **{unit: rf"{_STAMP}{fraction}$" for unit, fraction in _FRACTIONS.items()},
    **{kind: rf"{_STAMP}{_FRACTIONS[unit]}{_ZONE}$" for kind, unit in _ZONED.items()},
}
"""The kinds of values, by what they look like; anything else is text."""
_TEXT = "text"
_LONG, _MOST_WITH_FRACTION = "whole of many digits", 1 << 53
"""A whole number that a column of numbers with fractions would round."""
_STAMPS = ("date", *_FRACTIONS)
_FIRST_VALUES = 64
_SECOND = len("2024-01-01 00:00:00")


class ColumnTypes:
    """The kinds of the values of columns, seen so far."""

    def __init__(self, names: Sequence[str]) -> None:
        self._kinds: dict[str, set[str]] = {name: set() for name in names}

    def note(self, batch: pa.RecordBatch) -> None:
        """Add the values of rows of text, in columns of the same order."""
        for kinds, column in zip(self._kinds.values(), batch.columns, strict=True):
            if _TEXT not in kinds:
                kinds |= _kinds_of(column.cast(pa.string()).drop_null())

    @property
    def kinds(self) -> Mapping[str, set[str]]:
        """The kinds of the values of each column."""
        return self._kinds


def _kinds_of(values: pa.Array) -> set[str]:
    if _TEXT in (first := _some_kinds(values[:_FIRST_VALUES])) or len(values) <= _FIRST_VALUES:
        return first
    return first | _some_kinds(values[_FIRST_VALUES:])


def _some_kinds(values: pa.Array) -> set[str]:
    found = set()
    values = values.filter(pc.not_equal(values, ""))
    for kind, pattern in _KINDS.items():
        if not len(values):
            break
        are = pc.match_substring_regex(values, pattern)
        if pc.any(are).as_py():
            found |= _read_as(values.filter(are), kind)
            values = values.filter(pc.invert(are))
    return found | ({_TEXT} if len(values) else set())


def _read_as(values: pa.Array, kind: str) -> set[str]:
    """The kinds of values that look like a ``kind``."""
    if not _can_be_read(values, kind):
        return {_TEXT}
    if kind == "whole":
        least, most = pc.min_max(values.cast(pa.int64())).as_py().values()
        return (
            {kind, _LONG} if most > _MOST_WITH_FRACTION or least < -_MOST_WITH_FRACTION else {kind}
        )
    return {kind}


def _can_be_read(values: pa.Array, kind: str) -> bool:
    """Whether values that look like a kind are of it: no number of 20 digits, no 31 February."""
    try:
        if kind == "whole":
            values.cast(pa.int64())
        elif kind == "date":
            values.cast(pa.date32())
        elif kind in _STAMPS or kind in _ZONED:
            unit = "ns" if kind.startswith("ns") else "s"
            pc.utf8_slice_codeunits(values, 0, _SECOND).cast(pa.timestamp(unit))
    except pa.ArrowInvalid:
        return False
    return True


def type_of_kinds(kinds: set[str]) -> pa.DataType:
    """The type that values of these kinds can be read as; null for none. A local time beside a
    point in time is text: they are two things."""
    if not kinds:
        return pa.null()
    if kinds == {"boolean"}:
        return pa.bool_()
    if "whole" in kinds and kinds <= {"whole", _LONG}:
        return pa.int64()
    if kinds <= {"whole", "number"}:
        return pa.float64()
    if kinds == {"date"}:
        return pa.date32()
    if kinds <= set(_STAMPS):
        return pa.timestamp(max(kinds, key=_STAMPS.index))
    if kinds <= set(_ZONED):
        return pa.timestamp(max((_ZONED[kind] for kind in kinds), key=_STAMPS.index), "UTC")
    return pa.string()
