"""A stream of batches with the interface of DataFusion's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator

import pyarrow as pa
from datafusion.record_batch import RecordBatch


class Stream:
    """Batches of a result, in order, computed as they are taken.

    ``close`` (also at the end of a ``with`` block, or when the stream is dropped) ends the work.
    """

    def __init__(self, schema: pa.Schema, tables: Generator[pa.Table, None, None]) -> None:
        self.schema = schema
        self._tables = tables
        self._batches = (b for t in tables for b in t.to_batches() if b.num_rows)

    def next(self) -> RecordBatch:
        """The next batch; StopIteration at the end."""
        return next(self)

    def __next__(self) -> RecordBatch:
        return _wrapped(next(self._batches))

    def __iter__(self) -> Iterator[RecordBatch]:
        return self

    def __aiter__(self) -> AsyncIterator[RecordBatch]:
        return self

    async def __anext__(self) -> RecordBatch:
        batch = next(self._batches, None)
        if batch is None:
            raise StopAsyncIteration
        return _wrapped(batch)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self._batches)
        return reader.__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """End the work; nothing more comes."""
        self._batches.close()
        self._tables.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Batch:
    """What ``RecordBatch.to_pyarrow`` delegates to."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def to_pyarrow(self) -> pa.RecordBatch:
        return self._batch

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


def _wrapped(batch: pa.RecordBatch) -> RecordBatch:
    return RecordBatch(_Batch(batch))
