"""Tables of Python, pandas and Polars as Arrow tables, or the error that says why they are none."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.datafusion.arrow_types import first_repeat
from blendfusion.errors import ArgumentError, half_a_pair

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_NESTED = {"dict", "list", "tuple", "set", "ndarray"}
_LONGEST = 1 << 53
"""The longest whole number all below which a number with a fraction holds."""
_WITHOUT_ARROW = {"Object", "Int128", "UInt128"}
"""Types of Polars that Arrow lacks; of objects, Polars passes on their addresses."""


def is_hub_dataset(value: object) -> bool:
    """Whether a value is a dataset of the library ``datasets``."""
    kind = type(value)
    return kind.__name__ == "Dataset" and kind.__module__.partition(".")[0] == "datasets"


def table_of_columns(data: Mapping[str, Any]) -> pa.Table:
    """A dict of columns as an Arrow table. Raises ArgumentError where it is none."""
    for name, values in data.items():
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise ArgumentError(
                f"column {name!r} is a value of the type {type(values).__name__}",
                hint=f"A column is a list with a value for each row: {{{name!r}: […]}}.",
            )
    arrays = {
        name: values
        if isinstance(values, (pa.Array, pa.ChunkedArray))
        else _array(values, f"column {name!r}", f"[str(value) for value in data[{name!r}]]")
        for name, values in data.items()
    }
    lengths = {name: len(array) for name, array in arrays.items()}
    first = next(iter(lengths), "")
    other = next((name for name in lengths if lengths[name] != lengths[first]), None)
    if other is not None:
        raise ArgumentError(
            f"column {first!r} has {lengths[first]:,} values, and {other!r} has {lengths[other]:,}",
            hint="All columns have one value a row; None is NULL.",
        )
    return pa.table(arrays)


def table_of_pandas(data: pd.DataFrame, *, preserve_index: bool) -> pa.Table:
    """``data`` as an Arrow table. Raises ArgumentError for two columns of one name, and for a
    column with values of several types, or of a type that Arrow lacks."""
    if not hasattr(data, "iloc") or not hasattr(data, "columns"):
        hint = "session.from_pylist takes a list of rows, from_pydict a dict of columns, from_polars, from_arrow, …"
        raise ArgumentError(f"a {type(data).__name__} is no pandas frame", hint=hint)
    twice = data.columns[data.columns.duplicated()]
    if len(twice):
        raise ArgumentError(
            f"the frame has two columns {str(twice[0])!r}", hint="Rename one: df.columns = […]."
        )
    data = _without_periods(data)
    sparse = {
        name: kind.subtype for name, kind in data.dtypes.items() if hasattr(kind, "fill_value")
    }
    try:
        table = pa.Table.from_pandas(data.astype(sparse), preserve_index=preserve_index)
    except (pa.ArrowException, OverflowError):
        for name in data.columns:
            _array_of_pandas(data, name)
        raise
    for name in data.columns:
        is_object = str(data.dtypes[name]) == "object"
        if is_object and _is_moment(table.schema.field(str(name)).type):
            _array_of_pandas(data, name)
    return table


def pandas_of(table: pa.Table) -> pd.DataFrame:
    """``table`` as a pandas frame. A column of integers with NULL that a double would round becomes
    ``Int64`` or ``UInt64``."""
    import pandas as pd

    frame: pd.DataFrame = table.to_pandas()
    kinds = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
    for place, column in enumerate(table.columns):
        if column.type in kinds and column.null_count and _is_rounded(column):
            frame.isetitem(place, column.to_pandas(types_mapper=kinds.get))
    return frame


def polars_of(table: pa.Table) -> pl.DataFrame:
    """``table`` as a Polars frame. Polars has no zones that are offsets, such as +05:30: their
    moments are in UTC. Raises ValueError for a decimal of more than 38 digits."""
    import polars as pl

    for place, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_timestamp(kind) and (kind.tz or "")[:1] in ("+", "-"):
            kind = pa.timestamp(kind.unit, "UTC")
        elif pa.types.is_decimal256(kind):
            kind = pa.decimal128(38, kind.scale)
        if kind != field.type:
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _is_rounded(values: pa.ChunkedArray) -> bool:
    least, most = pc.min_max(values).as_py().values()
    return least is not None and (most > _LONGEST or least < -_LONGEST)


def _without_periods(data: pd.DataFrame) -> pd.DataFrame:
    """``data`` with the text of periods, such as 2024-01, which Arrow has as whole numbers."""
    columns = {name: "string" for name, kind in data.dtypes.items() if _is_period(kind)}
    changed = data.astype(columns) if columns else data
    levels = [data.index.get_level_values(number) for number in range(data.index.nlevels)]
    if any(_is_period(level.dtype) for level in levels):
        texts = [level.astype(str) if _is_period(level.dtype) else level for level in levels]
        return changed.set_axis(_index_of(texts), axis=0)
    return changed


def _is_period(kind: object) -> bool:
    return str(kind).startswith("period[")


def _index_of(levels: list[Any]) -> Any:
    import pandas as pd

    return levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels)


def _array_of_pandas(data: pd.DataFrame, name: Any) -> pa.Array:
    remedy = f"df[{name!r}] = df[{name!r}].astype('string')"
    return _array(data[name], f"column {str(name)!r} of the frame", remedy)


def check_types(data: Any) -> None:
    """Raises ArgumentError for a frame of Polars with a column of a type that Arrow lacks, and for
    a table of Arrow with two columns of one name."""
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        twice = first_repeat(data.schema.names)
        if twice is not None:
            raise ArgumentError(
                f"the table has two columns {twice!r}",
                hint="Rename one: table.rename_columns([…]).",
            )
    if not hasattr(data, "collect_schema"):
        return
    for name, kind in data.collect_schema().items():
        if str(kind) in _WITHOUT_ARROW:
            raise ArgumentError(
                f"column {name!r} of the frame has the type {kind}, which no table here has",
                hint=f"Make it text: df.with_columns(pl.Series({name!r}, "
                f"[str(value) for value in df[{name!r}]])).",
            )


def _array(values: Iterable[object], named: str, remedy: str) -> pa.Array:
    """``values`` as Arrow takes them from Python. Raises ArgumentError about the column
    ``named``."""
    try:
        array = pa.array(values, from_pandas=True if hasattr(values, "iloc") else None)
    except UnicodeEncodeError as problem:
        raise half_a_pair(problem) from problem
    except (pa.ArrowException, OverflowError) as problem:
        wrong = f"holds {_wrong(values, problem)}"
        raise ArgumentError(
            f"{named} {wrong}", hint=f"Make them text, for example: {remedy}."
        ) from problem
    # Arrow takes the type of the first, and loses the times or guesses the zones of the others
    parts = _time_parts(values) if _is_moment(array.type) else set()
    if len(parts) > 1:
        missing = "time" if "date" in parts else "time zone"
        raise ArgumentError(
            f"{named} holds values of several types: dates with a {missing}, and without",
            hint=f"Make them text, for example: {remedy}.",
        )
    return array


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _time_parts(values: Iterable[object]) -> set[str]:
    """Each kind of the dates among ``values``: a date alone, with a time, with the time of a
    zone."""
    return {_time_part(v) for v in values if isinstance(v, datetime.date) and v == v}


def _time_part(day: datetime.date) -> str:
    if not isinstance(day, datetime.datetime):
        return "date"
    return "time" if day.tzinfo is None else "zone"


def _wrong(values: Iterable[object], problem: Exception) -> str:
    if isinstance(problem, OverflowError):
        return "a whole number of more than 64 bits"
    known = (v for v in values if v is not None and not (isinstance(v, float) and v != v))
    kinds = {type(v).__name__ for v in known}
    if len(kinds) == 1 and not kinds & _NESTED:
        return f"values of the type {next(iter(kinds))}, which no table here has"
    return "values of several types"
