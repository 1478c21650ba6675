"""The values of Arrow columns as objects of Python, none of which is shortened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from blendfusion.errors import QueryError

T = TypeVar("T")


def convert(table: pa.Table, function: Callable[[pa.Table], T], library: str = "Python") -> T:
    """The objects that ``function`` makes of ``table``. Raises QueryError, which names the column,
    for a value that those of ``library`` cannot hold: Python's times have no nanoseconds, and its
    calendar has the years 1 to 9999."""
    try:
        if library == "Python":
            for column in table.columns:
                if column.type == pa.time64("ns"):
                    column.cast(pa.time64("us"))
        return function(table)
    except (OverflowError, ValueError) as problem:
        if len(table.columns) > 1:
            for place in range(len(table.columns)):
                convert(table.select([place]), function, library)
            raise
        name = table.column_names[0]
        raise QueryError(
            f"column '{name}' has a value of {table.schema.types[0]} that {library} cannot hold",
            hint=f'CAST("{name}" AS VARCHAR) gives its text, and to_arrow_table() the value.',
        ) from problem


def python_values(values: pa.ChunkedArray | pa.Array, separator: str = "T") -> list[Any]:
    """The values of a column as ``to_pylist`` has them, maps as dicts. Where Python has no such
    object, a value is text in the form of ISO 8601, with ``separator`` before the time of day: a
    time with nanoseconds, a day before the year 1 or after 9999. A duration with nanoseconds is an
    interval of Arrow. A floating number of 16 or 32 bits is the number with the fewest digits that
    rounds to it."""
    if not _may_differ(values.type):
        return values.to_pylist(maps_as_pydicts="lossy")  # type: ignore[no-any-return]
    try:
        return _as_one(values)
    except (OverflowError, ValueError, pa.ArrowNotImplementedError):
        return [_value(scalar, separator) for scalar in values]


def python_rows(
    table: pa.Table | pa.RecordBatch, separator: str = "T"
) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, with the values of ``python_values``; columns may have equal names."""
    columns = [python_values(column, separator) for column in table.columns]
    return zip(*columns, strict=True) if columns else iter([()] * table.num_rows)


def _as_one(values: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column without nanoseconds, all at once. Raises OverflowError, ValueError and
    ArrowNotImplementedError for any other one."""
    kind = values.type
    if pa.types.is_float32(kind):
        values = values.cast(pa.string()).cast(pa.float64())
    elif not pa.types.is_temporal(kind):
        raise ValueError(kind)
    elif getattr(kind, "unit", "") == "ns":
        values = values.cast(_in_microseconds(kind))
    return values.to_pylist()  # type: ignore[no-any-return]


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")


@cache
def _may_differ(kind: pa.DataType) -> bool:
    """Whether ``to_pylist`` may shorten or refuse values of this type."""
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _may_differ(kind.value_type)
    if types.is_nested(kind):
        return any(_may_differ(kind.field(at).type) for at in range(kind.num_fields))
    if types.is_floating(kind):
        return bool(kind.bit_width < 64)
    return bool(types.is_temporal(kind) and not types.is_interval(kind))


def _value(scalar: Any, separator: str) -> Any:
    types, kind = pa.types, scalar.type
    if not scalar.is_valid:
        return None
    if not _may_differ(kind):
        return scalar.as_py(maps_as_pydicts="lossy")
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _value(scalar.value, separator)
    if types.is_map(kind):
        keys, entries = (python_values(scalar.values.field(at), separator) for at in (0, 1))
        return dict(zip(keys, entries, strict=True))
    if types.is_struct(kind):
        return {name: _value(part, separator) for name, part in scalar.items()}
    if types.is_nested(kind):
        return python_values(scalar.values, separator)
    if types.is_floating(kind):
        return float(str(np.dtype(f"f{kind.bit_width // 8}").type(scalar.as_py())))
    return _duration(scalar) if types.is_duration(kind) else _time(scalar, separator)


def _time(scalar: Any, separator: str) -> Any:
    """A date, a time of day or a timestamp."""
    kind = scalar.type
    unit: Any = "D" if pa.types.is_date32(kind) else getattr(kind, "unit", "ms")
    zone = getattr(kind, "tz", None)
    whole, nanoseconds = divmod(scalar.value, 1000) if unit == "ns" else (scalar.value, 0)
    if unit == "ns":
        scalar = pa.scalar(whole, _in_microseconds(kind))
    try:
        found = scalar.as_py()
    except (OverflowError, ValueError):
        moment = np.datetime64(scalar.value, unit)
        day = moment.astype("datetime64[D]") if pa.types.is_date(kind) else moment
        text = str(day).replace("T", separator)
        return text if zone is None else f"{text}+00:00"
    if not nanoseconds:
        return found
    text = found.isoformat(timespec="microseconds").replace("T", separator)
    end = text.index(".") + 7
    return f"{text[:end]}{nanoseconds:03}{text[end:]}"


def _duration(scalar: Any) -> Any:
    value, unit = scalar.value, scalar.type.unit
    try:
        if unit != "ns":
            return scalar.as_py()
        whole, rest = divmod(value, 1000)
        return (
            pa.MonthDayNano([0, 0, value]) if rest else pa.scalar(whole, pa.duration("us")).as_py()
        )
    except OverflowError:
        return str(np.timedelta64(value, unit))
