"""Digests of files and of Arrow data: equal for equal values, whatever the chunks and buffers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.datafusion.arrow_types import is_bytes, is_text

_ROWS = 65_536


def file_digest(path: Path) -> str:
    """The SHA-256 of a file's content. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def type_text(kind: pa.DataType) -> str:
    """The name of a type; a view of text counts as text, since its layout means nothing."""
    return str(kind).replace("string_view", "string").replace("binary_view", "binary")


def schema_of(schema: pa.Schema) -> list[list[str]]:
    """[name, type] of each column, in order."""
    return [[field.name, type_text(field.type)] for field in schema]


def table_digest(table: pa.Table) -> str:
    """A digest of names, types, values and the order of rows."""
    digest = hashlib.sha256(repr(schema_of(table.schema)).encode())
    for column in table.columns:
        digest.update(_column(column))
    return digest.hexdigest()


def unordered_digest(table: pa.Table) -> str | None:
    """A digest that is equal for the same rows in any order; None: a column cannot be sorted."""
    places = [str(n) for n in range(table.num_columns)]
    plain = pa.table([_sortable(column) for column in table.columns], names=places)
    try:
        order = pc.sort_indices(plain, sort_keys=[(name, "ascending") for name in places])
        return table_digest(plain.take(order))
    except (pa.ArrowException, TypeError):
        return None


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text and bytes in the layout that pyarrow sorts."""
    return column.cast(pa.large_binary()) if _is_varied(column.type) else column


def _column(column: pa.ChunkedArray) -> bytes:
    """A digest of one column, in pieces of a fixed number of rows, so that chunks do not matter."""
    digest = hashlib.sha256()
    for start in range(0, len(column), _ROWS):
        piece = column.slice(start, _ROWS)
        _update(digest, pa.concat_arrays(piece.chunks) if piece.num_chunks != 1 else piece.chunk(0))
    return digest.digest()


def _update(digest: hashlib._Hash, array: pa.Array) -> None:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _update(digest, array.storage)
    if pa.types.is_dictionary(kind):
        return _update(digest, array.dictionary_decode())
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    digest.update(b"%d;" % len(array) + np.packbits(nulls).tobytes())
    if pa.types.is_null(kind):
        return None
    if pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            _update(digest, pc.struct_field(array, [place]))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array).cast(pa.int64()), 0)
        digest.update(lengths.to_numpy().tobytes())
        _update(digest, array.flatten())
    elif _is_varied(kind):
        _bytes(digest, array.cast(pa.large_binary()).drop_null())
    elif pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        plain = array.cast(pa.uint8()) if pa.types.is_boolean(kind) else array
        valid = plain.drop_null()
        width, data = valid.type.bit_width // 8, valid.buffers()[1]
        if data is not None:
            begin = valid.offset * width
            digest.update(memoryview(data)[begin : begin + len(valid) * width])
    else:
        _texts(digest, array.to_pylist())
    return None


def _is_varied(kind: pa.DataType) -> bool:
    """Texts and bytes: values of varied length."""
    return is_text(kind) or is_bytes(kind)


def _bytes(digest: hashlib._Hash, valid: pa.Array) -> None:
    """Add the lengths and the bytes of a large_binary array without nulls."""
    digest.update(pc.binary_length(valid).cast(pa.int64()).to_numpy().tobytes())
    _, offsets, data = valid.buffers()
    if data is not None and len(valid):
        ends = np.frombuffer(offsets, np.int64)[valid.offset : valid.offset + len(valid) + 1]
        digest.update(memoryview(data)[ends[0] : ends[-1]])


def _texts(digest: hashlib._Hash, values: Iterable[object]) -> None:
    for value in values:
        text = repr(value).encode()
        digest.update(b"%d:" % len(text) + text)
