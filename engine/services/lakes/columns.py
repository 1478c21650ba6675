"""Columns of answers in tables of Delta Lake: a change is one version, which holds all rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from threading import Event
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.files.answer_columns import Compute, are_others
from blendfusion.services.lakes.delta import has_marked_rows, has_other_names
from blendfusion.services.lakes.tables import delta_at
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.services.lakes.session import LakeReading

_WAITING = 2
"""Batches that wait to be written."""


def table_of(session: LakeReading, name: str) -> DeltaColumns | None:
    """The table ``name`` of a session where it is one of a folder or URL of Delta Lake."""
    if name not in session.lakes or not session.table_exist(quoted_name(name)):
        return None
    source, storage = session.lakes[name]
    found = delta_at(source, storage) if isinstance(source, str | os.PathLike) else None
    return None if found is None else DeltaColumns(session, name, source, storage, found)


class DeltaColumns:
    """A table of Delta Lake. Its newest version is read, whichever the session has."""

    def __init__(
        self,
        session: LakeReading,
        name: str,
        source: str | os.PathLike[str],
        storage: Mapping[str, str],
        table: Any,
    ) -> None:
        self._session, self._name, self._source, self._storage = session, name, source, storage
        self._table = table
        self.place: str = table.table_uri

    @property
    def schema(self) -> pa.Schema:
        return self._dataset().schema

    @property
    def version(self) -> int:
        return int(self._table.version())

    def add(self, field: pa.Field, read: Sequence[str], compute: Compute) -> int:
        rows = 0

        def with_values(batch: pa.RecordBatch) -> pa.RecordBatch:
            nonlocal rows
            rows += batch.num_rows
            return batch.append_column(field, compute(batch.select([*read])))

        self._overwrite(self.schema.append(field), with_values)
        return rows

    def refresh(self, field: pa.Field, read: Sequence[str], compute: Compute) -> int:
        place = self.schema.get_field_index(field.name)

        def others(batch: pa.RecordBatch) -> int:
            return sum(are_others(batch.column(place), compute(batch.select([*read]))))

        rows = sum(map(others, self._batches()))
        if rows:  # the answers are kept by now: none is asked again
            self._overwrite(
                self.schema,
                lambda batch: batch.set_column(place, field, compute(batch.select([*read]))),
            )
        return rows

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._dataset().to_batches()

    def _dataset(self) -> Any:
        """The rows. Raises QueryError for a table that the library would read as NULL, or not."""
        if has_marked_rows(self._table) or has_other_names(self._table):
            raise QueryError(
                f"{self._name} cannot be written: its deleted rows are only marked, or its columns "
                "have other names in files"
            )
        return self._table.to_pyarrow_dataset()

    def _overwrite(
        self, schema: pa.Schema, made: Callable[[pa.RecordBatch], pa.RecordBatch]
    ) -> None:
        """Write all rows anew. Raises QueryError if somebody else wrote meanwhile."""
        from deltalake.exceptions import DeltaError

        batches = Queue[pa.RecordBatch | None](_WAITING)
        is_whole = Event()

        def rows() -> Iterator[pa.RecordBatch]:
            while (batch := batches.get()) is not None:
                yield batch
            if not is_whole.is_set():
                raise OSError("the rows are not whole")

        # The library's threads, in which it asks for rows, must not wait for a query.
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(self._write, pa.RecordBatchReader.from_batches(schema, rows()))
            try:
                for batch in self._batches():
                    _wait_for_room(batches, made(batch).cast(schema), written)
                is_whole.set()
            finally:
                _wait_for_room(batches, None, written)
        try:
            written.result()
        except (DeltaError, OSError) as problem:
            raise QueryError(
                f"{self._name} was not changed: {str(problem).splitlines()[0]}",
                hint="The answers are kept: run the statement again.",
            ) from problem
        self._table.update_incremental()

    def _write(self, rows: pa.RecordBatchReader) -> None:
        import deltalake

        by = self._table.metadata().partition_columns
        deltalake.write_deltalake(
            self._table, rows, mode="overwrite", schema_mode="overwrite", partition_by=by or None
        )

    def show(self) -> None:
        quoted = quoted_name(self._name)
        self._session.deregister_table(quoted)
        self._session.register_lake(quoted, self._source, storage_options=self._storage)


def _wait_for_room(
    batches: Queue[pa.RecordBatch | None], batch: pa.RecordBatch | None, reader: Future[None]
) -> None:
    """Wait until there is room for a batch, or nobody reads any more."""
    while not reader.done():
        try:
            batches.put(batch, timeout=0.1)
        except Full:
            continue
        return
