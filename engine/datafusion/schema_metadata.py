"""A DataFusion context that leaves out of Arrow data what DataFusion fails on.

Tables with different metadata, as pandas writes it, fail when DataFusion's ``join_selection`` swaps
the sides of their join. Dictionaries of truth values, pandas' categories of such, fail when they
are grouped or compared. A field of a struct that is NULL has whatever value lies below it, 0 or ''
as pyarrow makes them: such fields are NULL, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext

from blendfusion.datafusion.arrow_layouts import (
    has_structs,
    plain_batch,
    plain_type,
    with_null_fields,
)

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
        known = None if schema is None else _bare_schema(schema)
        return super().create_dataframe(_bare_partitions(partitions), name, known)

    def read_batch(self, batch: pa.RecordBatch) -> DataFrame:
        return super().read_batch(_bare(batch))

    def read_batches(self, batches: Iterable[pa.RecordBatch]) -> DataFrame:
        return super().read_batches([_bare(batch) for batch in batches])

    def from_arrow(self, data: Any, name: str | None = None) -> DataFrame:
        if isinstance(data, pa.Table | pa.RecordBatch):
            data = _bare(data)
        elif hasattr(data, "__arrow_c_stream__"):
            reader = reader_of(data)
            schema = _bare_schema(reader.schema)
            data = pa.RecordBatchReader.from_batches(schema, map(_bare, reader))
        return super().from_arrow(data, name)


def reader_of(data: Any) -> pa.RecordBatchReader:
    """The batches of an object that gives an Arrow stream."""
    try:
        return pa.RecordBatchReader.from_stream(data)
    except TypeError:
        return pa.RecordBatchReader.from_stream(_WithoutSchema(data))


class _WithoutSchema:
    """A stream of an object that takes no schema, as relations of DuckDB before 1.2."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._data.__arrow_c_stream__()


def _bare(data: Any) -> Any:
    """``data`` in its bare schema; whatever is no Arrow data as it is."""
    if not isinstance(data, pa.Table | pa.RecordBatch):
        return data
    data = _with_null_fields(data)
    schema = _bare_schema(data.schema)
    if schema.types == data.schema.types:
        return data.replace_schema_metadata(None) if data.schema.metadata else data
    if isinstance(data, pa.RecordBatch):
        return plain_batch(data, schema)
    return pa.Table.from_batches([plain_batch(b, schema) for b in data.to_batches()], schema)


def _with_null_fields(data: Any) -> Any:
    """``data`` in which the fields of a struct that is NULL are NULL."""
    if not any(map(has_structs, data.schema.types)):
        return data
    if isinstance(data, pa.Table):
        batches = map(_with_null_fields, data.to_batches())
        return pa.Table.from_batches(list(batches), data.schema)
    return pa.RecordBatch.from_arrays(list(map(with_null_fields, data.columns)), schema=data.schema)


def _bare_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        [f.with_type(plain_type(f.type)) if _is_of_truth_values(f.type) else f for f in schema]
    )


def _is_of_truth_values(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind) and pa.types.is_boolean(kind.value_type))


def _bare_partitions(partitions: Batches) -> Batches:
    if not isinstance(partitions, list):
        return partitions  # DataFusion says what is wrong with it
    return [[_bare(b) for b in part] if isinstance(part, list) else part for part in partitions]
