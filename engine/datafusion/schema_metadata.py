"""A DataFusion context that leaves out the metadata of schemas of Arrow data.

Tables with different metadata, as pandas writes it, fail when DataFusion's ``join_selection`` swaps
the sides of their join.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext

Batches = list[list[pa.RecordBatch]]


class WithoutMetadata(SessionContext):
    """A ``datafusion.SessionContext`` of tables whose schemas have no metadata of their own."""

    def register_record_batches(self, name: str, partitions: Batches) -> None:
        super().register_record_batches(name, _bare_partitions(partitions))

    def register_batch(self, name: str, batch: pa.RecordBatch) -> None:
        super().register_batch(name, _bare(batch))

    def create_dataframe(
        self, partitions: Batches, name: str | None = None, schema: pa.Schema | None = None
    ) -> DataFrame:
        known = None if schema is None else schema.remove_metadata()
        return super().create_dataframe(_bare_partitions(partitions), name, known)

    def read_batch(self, batch: pa.RecordBatch) -> DataFrame:
        return super().read_batch(_bare(batch))

    def read_batches(self, batches: Iterable[pa.RecordBatch]) -> DataFrame:
        return super().read_batches([_bare(batch) for batch in batches])

    def from_arrow(self, data: Any, name: str | None = None) -> DataFrame:
        if isinstance(data, pa.Table | pa.RecordBatch):
            data = _bare(data)
        elif hasattr(data, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(data)
            schema = reader.schema.remove_metadata()
            data = pa.RecordBatchReader.from_batches(schema, map(_bare, reader))
        return super().from_arrow(data, name)


def _bare(data: Any) -> Any:
    """``data`` without its schema's metadata; whatever is no Arrow data as it is."""
    known = isinstance(data, pa.Table | pa.RecordBatch) and data.schema.metadata
    return data.replace_schema_metadata(None) if known else data


def _bare_partitions(partitions: Batches) -> Batches:
    if not isinstance(partitions, list):
        return partitions  # DataFusion says what is wrong with it
    return [[_bare(b) for b in part] if isinstance(part, list) else part for part in partitions]
