"""Lance tables as tables of a session: columns and filters go into Lance's own scan.

Lance's provider supports older versions of DataFusion only, and a plainly registered Lance dataset
fails as soon as a filter is pushed into it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.dataset as pads
from datafusion.catalog import Table

from blendfusion.errors import ModelNotFound, QueryError, close_matches
from blendfusion.services.scans.python_table import Scan, ScannedTable, Scanner, in_sql

if TYPE_CHECKING:
    import lance
    from datafusion import SessionContext

    from blendfusion.places.folders import Listing


StorageOptions: TypeAlias = Mapping[str, str]
"""Options of an object store, such as its endpoint and keys, as LanceDB names them."""


def register(catalog: SessionContext, name: str, listing: Listing, sheet: str | None) -> None:
    """Register the Lance table in a folder."""
    catalog.register_table(name, lance_table(listing.base))


def lance_table(
    path: str | os.PathLike[str], storage_options: StorageOptions | None = None
) -> RegisteredLance:
    """The Lance table in the folder or at the URI ``path`` as a DataFusion table. Raises QueryError
    if there is none, and ModelNotFound without the extra 'search'."""
    return RegisteredLance(place_of(path), storage_options=storage_options)


def require_lance(module: str = "lance") -> None:
    """Raises ModelNotFound if the library is not installed."""
    import importlib.util

    if importlib.util.find_spec(module) is None:
        package = {"lance": "pylance", "lancedb": "lancedb"}[module]
        raise ModelNotFound(
            f"search needs the package {package}, which is not installed",
            hint="pip install 'blendfusion[search]'.",
        )


def place_of(path: str | os.PathLike[str]) -> str:
    """A path of this machine without ``~``, or a URI as it is."""
    text = os.fspath(path)
    return text if "://" in text else str(Path(text).expanduser())


class LanceTable(ScannedTable):
    """The dataset at a path. Each scan reads the latest version, with the columns at
    registration; or one fragment of ``version``."""

    def __init__(
        self,
        path: str,
        version: int | None = None,
        fragment: int | None = None,
        storage_options: StorageOptions | None = None,
    ) -> None:
        """Raises QueryError if there is no dataset."""
        super().__init__()
        self._path, self._storage = path, storage_options
        self._version, self._fragment = version, fragment
        self._schema = opened_table(path, storage_options).schema

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scans(self) -> Sequence[Scan]:
        dataset = opened_table(self._path, self._storage)
        if self._version is not None:
            dataset = dataset.checkout_version(self._version)
        parts = dataset.get_fragments()
        if self._fragment is not None:
            parts = [part for part in parts if part.fragment_id == self._fragment]
        return [functools.partial(_scan, dataset, part) for part in parts]


class RegisteredLance(Table):
    """A Lance table as DataFusion registers it, with its place. ``alone``: another process can open
    it by its place alone."""

    def __init__(
        self,
        place: str,
        version: int | None = None,
        fragment: int | None = None,
        storage_options: StorageOptions | None = None,
    ) -> None:
        """Raises QueryError if there is no dataset."""
        super().__init__(LanceTable(place, version, fragment, storage_options))
        self.place, self.alone = place, not storage_options


def _scan(
    dataset: lance.LanceDataset,
    fragment: lance.LanceFragment,
    columns: list[str] | None,
    where: pads.Expression | None,
    batch_size: int,
) -> Scanner:
    return _Rows(dataset, fragment, columns, where, batch_size)


class _Rows:
    """The rows of a fragment that meet a filter."""

    def __init__(
        self,
        dataset: lance.LanceDataset,
        fragment: lance.LanceFragment,
        columns: list[str] | None,
        where: pads.Expression | None,
        batch_size: int,
    ) -> None:
        self._dataset, self._columns, self._where = dataset, columns, where
        self._wanted: dict[str, Any] = {"fragments": [fragment], "batch_size": batch_size}
        names = dataset.schema.names if columns is None else columns
        self.projected_schema = pa.schema([dataset.schema.field(name) for name in names])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            batches = self._filtered_there()
            first = next(batches, None)
        except (pa.ArrowException, ValueError, OSError):
            # Lance cannot express every predicate, and none beside columns of some types: all rows
            # are read, and filtered here.
            if self._where is None:
                raise
            yield from self._filtered_here()
            return
        if first is not None:
            yield first
            yield from batches

    def _filtered_there(self) -> Iterator[pa.RecordBatch]:
        scanner = self._dataset.scanner(columns=self._columns, filter=self._where, **self._wanted)
        return iter(scanner.to_batches())

    def _filtered_here(self) -> Iterator[pa.RecordBatch]:
        rows, schema = self._dataset.scanner(**self._wanted), self._dataset.schema
        filtered = pads.Scanner.from_batches(
            rows.to_batches(),
            schema=schema,
            columns=self._columns,
            filter=in_sql(self._where, schema),
        )
        yield from filtered.to_batches()


def opened_table(place: str, storage_options: StorageOptions | None = None) -> lance.LanceDataset:
    """The latest version of the Lance table at a path or URI. Raises QueryError if there is none,
    and ModelNotFound without the extra 'search'."""
    require_lance()
    import lance

    path = Path(place)
    if "://" not in place and not path.is_dir():
        near = ""
        if path.parent.is_dir():
            near = close_matches(path.name, (other.name for other in path.parent.glob("*.lance")))
        raise QueryError(f"there is no Lance table at '{place}'", hint=near or None)
    try:
        return lance.dataset(place, storage_options=dict(storage_options or {}) or None)
    except (OSError, ValueError) as problem:
        raise QueryError(
            f"'{place}' is not a Lance table: {problem}",
            hint="A Lance table is a folder that Lance or LanceDB has written: NAME.lance.",
        ) from problem
