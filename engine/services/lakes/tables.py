"""Opens tables of lakes by their places, and by the objects of their libraries."""

from __future__ import annotations

import copy
import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datafusion.catalog import Table

from blendfusion.errors import ArgumentError, ModelNotFound, QueryError
from blendfusion.places.lakes import ICEBERG, kind_of_lake, newest_metadata
from blendfusion.services.lakes.delta import readable


class LakeTable(Table):
    """A version of a table as DataFusion registers it. ``version`` names it among all versions of
    all tables."""

    def __init__(self, table: Any, version: str) -> None:
        super().__init__(table)
        self.version = version


_LIBRARIES = {"deltalake": "DeltaTable", "pyiceberg": "Table"}
NOTHING: Mapping[str, str] = {}


def is_lake_object(value: object) -> bool:
    """Whether a value is a table of deltalake or pyiceberg."""
    return _library_of(value) is not None


def _library_of(value: object) -> str | None:
    for kind in type(value).__mro__:
        library = kind.__module__.partition(".")[0]
        if library in _LIBRARIES and kind.__name__ == _LIBRARIES[library]:
            return library
    return None


def lake_table(
    source: object,
    version: int | None = None,
    at: datetime.datetime | str | None = None,
    storage: Mapping[str, str] = NOTHING,
) -> Any:
    """The table of a place or an object, as DataFusion takes it: see
    ``LakeReading.register_lake``."""
    if version is not None and at is not None:
        raise ArgumentError("a table is read as of a version or as of a time, not both")
    moment = None if at is None else _moment(at)
    library = _library_of(source)
    if isinstance(source, str | os.PathLike):
        place = _place(os.fspath(source))
        if kind_of_lake(place) == ICEBERG or place.endswith(".metadata.json"):
            return _iceberg(_static(place, storage), version, moment)
        delta_there = _delta(place, version, moment, storage)
        name = f"{delta_there.table_uri} {delta_there.metadata().id}"  # another one if made anew
        return LakeTable(readable(delta_there), f"{name}@{delta_there.version()}")
    if library is None:
        raise ArgumentError(
            f"a {type(source).__name__} is no table of a lake",
            hint="A folder, a URL, a deltalake.DeltaTable, or a table of pyiceberg.",
        )
    if library == "pyiceberg":
        return _iceberg(source, version, moment)
    delta: Any = source
    if version is None and moment is None:
        return Table(readable(delta))
    return Table(readable(_delta(delta.table_uri, version, moment, storage)))


def _place(text: str) -> str:
    return text if "://" in text else str(Path(text).expanduser())


def _moment(at: datetime.datetime | str) -> datetime.datetime:
    try:
        moment = datetime.datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError as problem:
        raise ArgumentError(
            f"at={at!r} is not a time", hint="at='2024-01-31T10:00:00+00:00'."
        ) from problem
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)


def _delta(
    place: str,
    version: int | None,
    moment: datetime.datetime | None,
    storage: Mapping[str, str],
) -> Any:
    try:
        import deltalake
    except ImportError as problem:
        raise _missing("deltalake", place) from problem
    try:
        table = deltalake.DeltaTable(place, version=version, storage_options=dict(storage) or None)
        if moment is not None:
            table.load_as_version(moment)
    except Exception as problem:  # the library's, of several kinds
        raise QueryError(f"no table of Delta Lake at '{place}': {_first(problem)}") from problem
    return table


def delta_at(source: str | os.PathLike[str], storage: Mapping[str, str]) -> Any:
    """The newest version of the table of Delta Lake at a place, as ``deltalake.DeltaTable``; None
    for a table of Iceberg. Raises QueryError for a place without one."""
    place = _place(os.fspath(source))
    is_iceberg = kind_of_lake(place) == ICEBERG or place.endswith(".metadata.json")
    return None if is_iceberg else _delta(place, None, None, storage)


def _static(place: str, storage: Mapping[str, str]) -> Any:
    try:
        from pyiceberg.table import StaticTable
    except ImportError as problem:
        raise _missing("pyiceberg", place) from problem
    file = place if place.endswith(".metadata.json") else newest_metadata(place)
    try:
        return StaticTable.from_metadata(file, dict(storage))
    except Exception as problem:  # the library's, of several kinds
        raise QueryError(f"no table of Iceberg at '{place}': {_first(problem)}") from problem


def _iceberg(table: Any, version: int | None, moment: datetime.datetime | None) -> Table:
    from blendfusion.services.lakes.iceberg import IcebergTable

    if version is None and moment is None:
        now = copy.copy(table)  # its state is replaced, never changed
        schema = now.metadata.current_schema_id  # a change of it makes no snapshot
        name = f"{now.metadata.table_uuid}@{now.metadata.current_snapshot_id}.{schema}"
        return LakeTable(IcebergTable(now, None), name)
    snapshot = (
        table.snapshot_as_of_timestamp(int(moment.timestamp() * 1000))
        if moment is not None
        else table.snapshot_by_id(version)
    )
    if snapshot is None:
        known = ", ".join(str(entry.snapshot_id) for entry in table.history()) or "none"
        raise QueryError(
            "this table of Iceberg has no such version", hint=f"Its snapshots are: {known}."
        )
    number = snapshot.snapshot_id
    return LakeTable(IcebergTable(table, number), f"{table.metadata.table_uuid}@{number}")


def _missing(package: str, place: str) -> ModelNotFound:
    return ModelNotFound(
        f"'{place}' needs the package {package}, which is not installed",
        hint="pip install 'blendfusion[lakes]'.",
    )


def _first(problem: Exception) -> str:
    return str(problem).split("\n")[0]
