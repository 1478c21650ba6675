"""Parquet files whose statistics hide not-a-number.

They leave NaN out. DataFusion 55 takes a column of which the least and the greatest value are equal
for a constant, and reads NaN as that value.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionContext

from blendfusion.datafusion.arrow_types import first_repeat
from blendfusion.errors import QueryError
from blendfusion.places.remote import local_path, scheme_of

SETTING = "datafusion.execution.collect_statistics"


def read_as_written(context: SessionContext, path: object, extension: str) -> None:
    """Have ``context`` plan without the statistics of files, if those of the local files at
    ``path`` (a file, a folder, a pattern) would turn NaN into a number. Raises QueryError for two
    columns of one name, of which DataFusion reads the first alone."""
    files = list(_files(str(path), extension))
    for file in files[:1]:
        _check_names(file)
    if any(map(_hides_nan, files)):
        SessionContext.sql(context, f"SET {SETTING} = false")


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


def _hides_nan(file: Path) -> bool:
    import pyarrow.parquet as pq

    with suppress(OSError, pa.ArrowException):  # DataFusion says what is wrong with it
        with pq.ParquetFile(file) as opened:
            alike = _constants(opened.metadata)
            columns = opened.read(columns=alike).columns if alike else []
        return any(pc.any(pc.is_nan(column)).as_py() for column in columns)
    return False


def _constants(metadata: pa.parquet.FileMetaData) -> list[str]:
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
