"""A stream of batches with the interface of DataFusion's streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing
from itertools import islice

import pyarrow as pa
from datafusion.record_batch import RecordBatch

from blendfusion.datafusion.background import items
from blendfusion.datafusion.method_gate import gate_errors
from blendfusion.redaction import Redaction


@gate_errors(lambda stream: stream.redaction)
class Stream:
    """Batches of a result, in order, computed as they are taken.

    ``close`` (also at the end of a ``with`` block, or when the stream is dropped) ends the work.
    """

    def __init__(
        self,
        schema: pa.Schema,
        tables: Generator[pa.Table, None, None],
        redaction: Redaction,
    ) -> None:
        self.schema = schema
        self._tables = tables
        self._batches = (b for t in tables for b in t.to_batches() if b.num_rows)
        self.redaction = redaction
        self._following: AsyncGenerator[RecordBatch, None] | None = None

    def next(self) -> RecordBatch:
        """The next batch; StopIteration at the end."""
        return next(self)

    def __next__(self) -> RecordBatch:
        return _wrap(next(self._batches))

    def __iter__(self) -> Iterator[RecordBatch]:
        return self

    async def __aiter__(self) -> AsyncGenerator[RecordBatch, None]:
        """The batches, computed in a thread of their own, while the event loop runs."""
        async with aclosing(items(self._each)) as batches:
            async for batch in batches:
                yield batch

    async def __anext__(self) -> RecordBatch:
        if self._following is None:
            self._following = self.__aiter__()
        return await anext(self._following)

    def _each(self) -> Generator[RecordBatch, None, None]:
        try:
            while (batch := next(self, None)) is not None:
                yield batch
        finally:
            self.close()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        # The first batch now: what is wrong with a query shows mostly there, and Arrow's interface
        # passes on no more of an exception than its text.
        first = list(islice(self._batches, 1))
        reader = pa.RecordBatchReader.from_batches(self.schema, self._outward(first))
        return reader.__arrow_c_stream__(requested_schema)

    def _outward(self, first: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from first
        while (batch := next(self, None)) is not None:
            yield batch.to_pyarrow()

    def close(self) -> None:
        """End the work; nothing more comes."""
        self._batches.close()
        self._tables.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Batch:
    """The object to which ``RecordBatch.to_pyarrow`` delegates."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def to_pyarrow(self) -> pa.RecordBatch:
        return self._batch

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


def _wrap(batch: pa.RecordBatch) -> RecordBatch:
    return RecordBatch(_Batch(batch))
