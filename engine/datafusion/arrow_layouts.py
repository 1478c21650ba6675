"""Arrow layouts that pyarrow's kernels cannot take from or filter, as layouts that they can.

DataFusion reads Parquet text as views. pyarrow has no ``take`` or ``filter`` for views, also not
inside lists and structs, so between DataFusion's plans text is plain text.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def plain_type(kind: pa.DataType) -> pa.DataType:
    """``kind`` without views.

    >>> plain_type(pa.list_(pa.string_view())).value_type
    DataType(string)
    """
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(plain_type(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(plain_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """``schema`` without views, every column nullable: batches of one plan may differ in that."""
    return pa.schema(
        [pa.field(field.name, plain_type(field.type), metadata=field.metadata) for field in schema]
    )


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """``batch`` in the layouts of ``schema``, by position."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def converted(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """``column`` as ``kind``, also where Arrow has no cast: to run ends and to NULLs alone."""
    if column.type == kind:
        return column
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    if pa.types.is_run_end_encoded(kind):
        runs = column.cast(kind.value_type)
        return pc.run_end_encode(runs, kind.run_end_type)
    if pa.types.is_dictionary(kind):
        encoded = column.cast(kind.value_type).combine_chunks().dictionary_encode()
        pairs = encoded.indices.cast(kind.index_type), encoded.dictionary
        return pa.chunked_array([pa.DictionaryArray.from_arrays(*pairs, ordered=kind.ordered)])
    if "fixed_size_list" in str(kind):
        # Arrow reads the first item for a NULL, of which DataFusion's empty buffers have none
        copies = [pa.concat_arrays([chunk, chunk[:0]]) for chunk in column.chunks]
        column = pa.chunked_array(copies, column.type)
    return column.cast(kind)
