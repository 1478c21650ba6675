"""Parquet files whose statistics hide not-a-number.

They leave NaN out, which is above all numbers in SQL. DataFusion 55 takes the greatest value of
them for that of the rows, and leaves rows out by it, whatever its settings; and a column of which
the least and the greatest value are equal for a constant.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import DataFrame, Expr, SessionContext, functions, literal

from blendfusion.datafusion.arrow_types import first_repeat
from blendfusion.datafusion.columns import Column, columns_of
from blendfusion.errors import QueryError
from blendfusion.places.remote import local_path, scheme_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SETTING = "datafusion.execution.collect_statistics"
_MOST = 256 * 2**20
"""The bytes of columns that a registration reads."""


def read_as_written(context: SessionContext, path: object, extension: str) -> set[str]:
    """The floating columns of the local files at ``path`` (a file, a folder, a pattern) with NaN
    behind statistics without it, which only ``by_value`` reads right. Files of more numbers than
    ``_MOST`` are read by their statistics, but for constants. Has ``context`` plan without
    statistics where there are any. Raises QueryError for two columns of one name, of which
    DataFusion reads the first alone."""
    files = list(_files(str(path), extension))
    for file in files[:1]:
        _check_names(file)
    found: set[str] = set()
    room = _MOST
    for file in files:
        room -= _find_nan(file, room, found)
    if found:
        SessionContext.sql(context, f"SET {SETTING} = false")
    return found


def by_value(frame: DataFrame, names: Collection[str]) -> DataFrame:
    """The frame, whose columns ``names`` are values that no statistics are about."""
    kinds = {field.name: field.type for field in frame.schema()}

    def read(column: Column) -> Expr:
        if column.name not in names:
            return column.expr
        nan = literal(math.nan).cast(kinds[column.name])
        return functions.nanvl(column.expr, nan).alias(column.name)

    return DataFrame.select(frame, *map(read, columns_of(frame)))


def _files(path: str, extension: str) -> Iterator[Path]:
    place = local_path(path)
    if scheme_of(place) is not None:
        return
    is_pattern = glob.has_magic(place) and not Path(place).exists()
    for found in map(Path, sorted(glob.glob(place))) if is_pattern else [Path(place)]:
        yield from found.rglob(f"*{extension}") if found.is_dir() else [found]


def _check_names(file: Path) -> None:
    import pyarrow.parquet as pq

    names: list[str] = []
    with suppress(OSError, pa.ArrowException):
        names = pq.read_schema(file).names
    twice = first_repeat(names)
    if twice is not None:
        raise QueryError(
            f"'{file.name}' has two columns '{twice}'", hint="Rename one, and write the file again."
        )


def _find_nan(file: Path, room: int, found: set[str]) -> int:
    """Add the columns of a file with NaN to ``found``, and return how many bytes were read of
    ``room``: all of those columns, or those that seem to have one value."""
    import pyarrow.parquet as pq

    with suppress(OSError, pa.ArrowException):  # DataFusion says what is wrong with it
        with pq.ParquetFile(file) as opened:
            kinds = opened.schema_arrow
            sizes = {
                name: size
                for name, size in _sizes(opened.metadata).items()
                if name not in found and pa.types.is_floating(kinds.field(name).type)
            }
            if sum(sizes.values()) > room:
                sizes = dict.fromkeys(sizes.keys() & {*_constants(opened.metadata)}, 0)
            found |= {name for name in sizes if _has_nan(opened, name)}
        return sum(sizes.values())
    return 0


def _has_nan(file: pq.ParquetFile, name: str) -> bool:
    batches = file.iter_batches(columns=[name])
    numbers = (column.cast(pa.float64()) for batch in batches for column in batch.columns)
    return any(pc.any(pc.is_nan(column)).as_py() for column in numbers)


def _sizes(metadata: pq.FileMetaData) -> dict[str, int]:
    """The bytes of the columns of a file that have statistics, and are no parts of others."""
    sizes: dict[str, int] = {}
    places = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    names = {*metadata.schema.to_arrow_schema().names} & {*places}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for name in names:
            column = group.column(places[name])
            if column.is_stats_set and column.statistics.has_min_max:
                sizes[name] = sizes.get(name, 0) + column.total_compressed_size
    return sizes


def _constants(metadata: pq.FileMetaData) -> list[str]:
    """The floating columns of a file that seem to have one value and no NULL."""
    kinds = metadata.schema
    floating = [
        place
        for place in range(metadata.num_columns)
        if kinds.column(place).physical_type in ("FLOAT", "DOUBLE")
        and "." not in kinds.column(place).path
    ]
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found = []
    for place in floating:
        known = [group.column(place).statistics for group in groups]
        if all(one is not None and one.has_min_max and not one.null_count for one in known):
            ends = {end for one in known for end in (one.min, one.max)}
            found += [kinds.column(place).name] if len(ends) == 1 else []
    return found
