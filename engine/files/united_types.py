"""Finds one type for the columns of one name in several files, and one schema for all files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from blendfusion.datafusion.arrow_types import is_bytes, is_list, is_text

types = pa.types

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""The decimal digits of a whole number by its bits."""
_UNITS = ("s", "ms", "us", "ns")
_MOST_DIGITS = 38


def united_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both types; None if there is none: numbers beside text.

    >>> united_type(pa.int32(), pa.uint32()), united_type(pa.int64(), pa.string())
    (DataType(int64), None)
    """
    one, other = _values(one), _values(other)
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    ways = (_numbers, _decimals, _texts, _times, _durations, _lists, _structs)
    return next((found for way in ways if (found := way(one, other)) is not None), None)


def _values(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary; any other type as it is."""
    return kind.value_type if types.is_dictionary(kind) else kind


def _numbers(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    both = (one, other)
    if all(map(types.is_integer, both)):
        return _whole(one, other)
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in both):
        if all(types.is_floating(kind) for kind in both):
            return max(both, key=lambda kind: kind.bit_width)
        return pa.float64()
    return None


def _whole(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if types.is_signed_integer(one) == types.is_signed_integer(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    signed, unsigned = (one, other) if types.is_signed_integer(one) else (other, one)
    if signed.bit_width > unsigned.bit_width:
        return signed
    wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}
    return wider.get(unsigned.bit_width, pa.decimal128(_DIGITS[64], 0))


def _decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    both = (one, other)
    if not any(map(types.is_decimal, both)):
        return None
    if any(map(types.is_floating, both)):
        return pa.float64()
    if not all(types.is_decimal(kind) or types.is_integer(kind) for kind in both):
        return None
    sizes = [
        (k.precision, k.scale) if types.is_decimal(k) else (_DIGITS[k.bit_width], 0) for k in both
    ]
    scale = max(scale for _, scale in sizes)
    digits = max(digits - less for digits, less in sizes) + scale
    if digits > 2 * _MOST_DIGITS:
        return None
    return pa.decimal128(digits, scale) if digits <= _MOST_DIGITS else pa.decimal256(digits, scale)


def _texts(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    for is_one_kind, large, usual in (
        (is_text, pa.large_string(), pa.string()),
        (is_bytes, pa.large_binary(), pa.binary()),
    ):
        if is_one_kind(one) and is_one_kind(other):
            return large if large in (one, other) else usual
    return None


def _times(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    both = (one, other)
    if all(map(types.is_date, both)):
        return pa.date64()
    stamps = [kind for kind in both if types.is_timestamp(kind)]
    if not stamps or not all(types.is_timestamp(kind) or types.is_date(kind) for kind in both):
        return None
    zones = {kind.tz for kind in stamps}
    if len(zones) > 1 and None in zones:
        return None  # a local time and a point in time are two things
    if len(stamps) < len(both) and zones != {None}:
        return None
    return pa.timestamp(_finest(stamps), stamps[0].tz)


def _durations(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    for is_one_kind, made in (
        (types.is_duration, pa.duration),
        (types.is_time, lambda unit: pa.time32(unit) if unit in _UNITS[:2] else pa.time64(unit)),
    ):
        if is_one_kind(one) and is_one_kind(other):
            return made(_finest((one, other)))
    return None


def _finest(kinds: Iterable[pa.DataType]) -> str:
    units: list[str] = [kind.unit for kind in kinds]
    return max(units, key=_UNITS.index)


def _lists(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (is_list(one) and is_list(other)):
        return None
    item = united_type(one.value_type, other.value_type)
    large = types.is_large_list(one) or types.is_large_list(other)
    return None if item is None else (pa.large_list(item) if large else pa.list_(item))


def _structs(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if not (types.is_struct(one) and types.is_struct(other)):
        return None
    fields = {field.name: field.type for field in one}
    for field in other:
        kind = united_type(fields.get(field.name, pa.null()), field.type)
        if kind is None:
            return None
        fields[field.name] = kind
    return pa.struct(list(fields.items()))


def united_schema(
    schemas: Sequence[pa.Schema], refuse: Callable[[str, int, int], Exception]
) -> pa.Schema:
    """The columns of all ``schemas`` by name, whatever its letter case, in the order in which they
    come. ``refuse`` makes the error of a column, by its name, whose types in two of the schemas,
    by their numbers, have no type that holds both."""
    fields: dict[str, tuple[str, pa.DataType, int]] = {}
    key_of = column_keys(schema.names for schema in schemas)
    for number, schema in enumerate(schemas):
        for field in schema:
            key = key_of(field.name)
            name, known, first = fields.get(key, (field.name, field.type, number))
            kind = known if known == field.type else united_type(known, field.type)
            if kind is None:
                raise refuse(field.name, first, number)
            fields[key] = (name, kind, first)
    return pa.schema([(name, kind) for name, kind, _ in fields.values()])


def column_keys(files: Iterable[Sequence[str]]) -> Callable[[str], str]:
    """A function that gives the form by which names of columns are compared: small letters, unless
    the columns of a file differ by those alone."""
    exact = any(len({name.lower() for name in names}) < len(names) for names in files)
    return str if exact else str.lower
