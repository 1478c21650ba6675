"""Folders of Parquet files: their partitions, and one type for columns of several widths."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.files.united_types import united_schema
from blendfusion.places.folders import File, list_files
from blendfusion.places.partitions import partition_of, types_of

_GIVEN = {"schema", "table_partition_cols"}
_READERS = 16


def folder_arguments(path: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Further arguments of ``register_parquet`` for a folder of this machine: the columns of the
    folders called ``name=value`` in it, and a schema where files have a column in several widths.
    None of both where ``args`` or ``kwargs`` say one of them, and for another place."""
    is_folder = isinstance(path, str | os.PathLike) and os.path.isdir(path)
    if not is_folder:
        return {}
    extension = kwargs.get("file_extension", ".parquet")
    try:
        files = [f for f in list_files(os.fspath(path)).files if f.name.endswith(extension)]
    except QueryError:  # there are none, which DataFusion says in its way
        return {}
    if args or _GIVEN & {*kwargs}:
        check_partitions(files, [*args[:1], kwargs.get("table_partition_cols")])
        return {}
    with ThreadPoolExecutor(_READERS) as pool:
        schemas = list(pool.map(_schema_of, files))
    return _partitions(Path(path), files, schemas) | _schema(schemas)


def check_partitions(files: Sequence[File], given: Sequence[object]) -> None:
    """Raise QueryError for a folder whose rows DataFusion would not find by their value, if
    ``given`` says that folders are columns."""
    if not any(given):
        return
    for partition in (p for file in files for p in file.partitions if not p.is_found):
        raise QueryError(
            f"DataFusion does not find the rows of the folder '{partition.name}="
            f"{partition.written}' by their value",
            hint="session.register_file(path, name) reads such folders.",
        )


def _partitions(
    folder: Path, files: Sequence[File], schemas: Sequence[pa.Schema]
) -> dict[str, Any]:
    """The partitions of files that have the same ones, in folders alone."""
    above = sum(partition_of(part) is not None for part in folder.parts)
    below = [file.partitions[above:] for file in files]
    columns = list(types_of(below).items())
    names = [name for name, _ in columns]
    alike = all([partition.name for partition in of_file] == names for of_file in below)
    # DataFusion knows neither escapes nor NULL in the names of folders.
    plain = all(partition.is_plain for of_file in below for partition in of_file)
    held = any(name in schema.names for schema in schemas for name in names)
    return {"table_partition_cols": columns} if columns and alike and plain and not held else {}


def _schema(schemas: Sequence[pa.Schema]) -> dict[str, pa.Schema]:
    types: dict[str, pa.DataType] = {}
    alike = all(types.setdefault(f.name, f.type) == f.type for schema in schemas for f in schema)
    try:
        return {} if alike else {"schema": united_schema(schemas, _type_error)}
    except QueryError:  # DataFusion says which column it is
        return {}


def _schema_of(file: File) -> pa.Schema:
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(file.path).remove_metadata()
    except (OSError, pa.ArrowException):  # DataFusion says what is wrong with the file
        return pa.schema([])


def _type_error(name: str, one: int, other: int) -> QueryError:
    return QueryError(f"the column '{name}' has types without a common one")
