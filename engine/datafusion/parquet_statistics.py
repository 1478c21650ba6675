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

from blendfusion.datafusion.arrow_layouts import plain_type
from blendfusion.datafusion.arrow_types import first_repeat
from blendfusion.datafusion.columns import Column, columns_of
from blendfusion.errors import QueryError
from blendfusion.places.remote import local_path, scheme_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SETTING = "datafusion.execution.collect_statistics"
_MOST = 256 * 2**20
"""The bytes of columns that a registration reads."""


def read_as_written(path: object, extension: str) -> set[str] | None:
    """The floating columns of the local files at ``path`` (a file, a folder, a pattern) that may
    have NaN behind statistics without it, which only ``by_value`` reads right: those that have it,
    and those of files with more bytes of numbers than ``_MOST``, which are not read. None for
    files elsewhere, of which nothing is read. Raises QueryError for two columns of one name, of
    which DataFusion reads the first alone."""
    place = local_path(str(path))
    if scheme_of(place) is not None:
        return None
    files = list(_files(place, extension))
    for file in files[:1]:
        _check_names(file)
    found: set[str] = set()
    room = _MOST
    for file in files:
        room -= _find_nan(file, room, found)
    return found


def by_value(context: SessionContext, frame: DataFrame, names: Collection[str] | None) -> DataFrame:
    """The frame, whose columns ``names`` (None: all that are floating) are values that no
    statistics are about. Has ``context`` plan without statistics if there are any."""
    kinds = {field.name: field.type for field in frame.schema()}
    if names is None:
        names = {name for name, kind in kinds.items() if pa.types.is_floating(kind)}
    if not names:
        return frame
    SessionContext.sql(context, f"SET {SETTING} = false")

    def read(column: Column) -> Expr:
        if column.name not in names:
            return column.expr
        nan = literal(math.nan).cast(kinds[column.name])
        return functions.nanvl(column.expr, nan).alias(column.name)

    return DataFrame.select(frame, *map(read, columns_of(frame)))


def _files(place: str, extension: str) -> Iterator[Path]:
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
    """Add the columns of a file that may have NaN to ``found``, and return how many bytes of
    ``room`` were read."""
    import pyarrow.parquet as pq

    with suppress(OSError, pa.ArrowException):  # DataFusion says what is wrong with it
        with pq.ParquetFile(file) as opened:
            kinds = opened.schema_arrow
            sizes = {
                name: size
                for name, size in _sizes(opened.metadata).items()
                if name not in found and pa.types.is_floating(plain_type(kinds.field(name).type))
            }
            size = sum(sizes.values())
            read = size <= room
            found |= {name for name in sizes if not read or _has_nan(opened, name)}
        return size if read else 0
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
