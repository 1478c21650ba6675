"""Arrow layouts that pyarrow's kernels cannot take from or filter, as layouts that they can.

DataFusion reads Parquet text as views. pyarrow has no ``take`` or ``filter`` for views, also not
inside lists and structs, so between DataFusion's plans text is plain text. A dictionary is decoded
there, too: a NULL among its values has no code of its own in Arrow's kernels, dictionaries of two
batches cannot be put together where one has such a NULL, and equal values have several codes. The
result of a query has dictionaries again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def plain_type(kind: pa.DataType) -> pa.DataType:
    """``kind`` without views, dictionaries and run ends.

    >>> plain_type(pa.list_(pa.string_view())).value_type
    DataType(string)
    >>> plain_type(pa.dictionary(pa.int8(), pa.string_view()))
    DataType(string)
    """
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
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
    """``schema`` in plain types, every column nullable: batches of one plan may differ in that."""
    return pa.schema(
        [pa.field(field.name, plain_type(field.type), metadata=field.metadata) for field in schema]
    )


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """``batch`` in the layouts of ``schema``, by position."""
    if batch.schema.equals(schema):
        return batch
    columns = map(_decode, batch.columns, schema.types)
    return pa.RecordBatch.from_arrays(list(columns), schema=schema)


def _decode(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """``array`` as the plain type ``kind``."""
    if array.type == kind:
        return array
    if pa.types.is_dictionary(array.type):
        return _decode(array.dictionary, kind).take(array.indices)
    if pa.types.is_run_end_encoded(array.type):
        return _decode(pc.run_end_decode(array), kind)
    return array.cast(kind)


def has_structs(kind: pa.DataType) -> bool:
    """Whether values of a type are structs, or lists of such."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return has_structs(kind.value_type)
    return bool(pa.types.is_struct(kind))


def with_null_fields(array: pa.Array) -> pa.Array:
    """``array`` in which the fields of a struct that is NULL are NULL, also within lists.

    >>> below = pa.array([None, {"n": 1}]).field("n"), with_null_fields(pa.array([None, {"n": 1}])).field("n")
    >>> [fields.to_pylist() for fields in below]
    [[0, 1], [None, 1]]
    """
    kind = array.type
    if not has_structs(kind):
        return array
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        fields = list(map(with_null_fields, array.flatten()))
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=nulls)
    offsets = pc.add(array.offsets, pa.scalar(0, array.offsets.type))  # no slice: no mask fits one
    values = with_null_fields(array.values)
    return type(array).from_arrays(offsets, values, type=kind, mask=nulls)


def convert(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """``column`` as ``kind``, also where Arrow has no cast: to dictionaries, to run ends and to
    NULLs alone."""
    if column.type == kind:
        return column
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    if pa.types.is_run_end_encoded(kind):
        runs = column.cast(kind.value_type)
        return pc.run_end_encode(runs, kind.run_end_type)
    if pa.types.is_dictionary(kind):
        decode = partial(_decode, kind=plain_type(kind.value_type))
        pieces = [piece for chunk in column.chunks for piece in _encode(decode(chunk), kind)]
        return pa.chunked_array(pieces, kind)
    if pa.types.is_nested(kind) and "dictionary<" in str(kind):
        return pa.chunked_array([_rebuild(chunk, kind) for chunk in column.chunks], kind)
    if "fixed_size_list" in str(kind):
        # Arrow reads the first item for a NULL, of which DataFusion's empty buffers have none
        copies = [pa.concat_arrays([chunk, chunk[:0]]) for chunk in column.chunks]
        column = pa.chunked_array(copies, column.type)
    return column.cast(kind)


def _rebuild(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """``array`` as the nested type ``kind``, with dictionaries inside, which Arrow casts texts to
    and nothing else."""
    if pa.types.is_struct(kind):
        parts = [_whole(array.field(i), field.type) for i, field in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        array = pa.concat_arrays([array, array[:0]])  # offsets from 0
        items = _whole(array.flatten(), kind.value_type)
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        ends = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
        made = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
        offsets = pa.array(ends, pa.int64() if made is pa.LargeListArray else pa.int32())
        return made.from_arrays(offsets, items, type=kind, mask=array.is_null())
    return array.cast(kind)


def _whole(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """``array`` as one array of ``kind``."""
    return convert(pa.chunked_array([array]), kind).combine_chunks()


def _encode(values: pa.Array, kind: pa.DictionaryType) -> Iterator[pa.Array]:
    """``values`` as dictionaries of ``kind``, several where its index has too few numbers for one.
    NULL is no value of them."""
    try:
        encoded = values.dictionary_encode()
    except pa.ArrowNotImplementedError:  # of lists and structs: each row is a value
        rows = pa.array(np.arange(len(values)), mask=values.is_null().to_numpy(False))
        encoded = pa.DictionaryArray.from_arrays(rows, values)
    index = kind.index_type  # whose to_pandas_dtype needs pandas
    if len(encoded.dictionary) > 2 ** (index.bit_width - pa.types.is_signed_integer(index)):
        half = len(values) // 2
        yield from _encode(values[:half], kind)
        yield from _encode(values[half:], kind)
        return
    codes, dictionary = encoded.indices.cast(kind.index_type), encoded.dictionary
    yield pa.DictionaryArray.from_arrays(
        codes, dictionary.cast(kind.value_type), ordered=kind.ordered
    )


def concat(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables of one schema as one table. Without columns, Arrow would lose their
    number."""
    if tables[0].num_columns:
        return pa.concat_tables(tables)
    return pa.table({"rows": pa.nulls(sum(map(len, tables)))}).select([])


def as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """``table`` with the names and types of ``schema``, by position."""
    if not schema.names:
        return table.select([])  # without the constant that kept the number of its rows
    renamed = table.rename_columns(schema.names)
    if renamed.schema.equals(schema):
        return renamed
    columns = map(convert, renamed.columns, schema.types)
    return pa.Table.from_arrays(list(columns), schema=schema)
