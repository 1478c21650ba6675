"""Finds the distinct values of columns of text: the loops that follow are over these alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.errors import ArgumentError
from blendfusion.models.protocol.model import Values

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


def distinct(columns: Sequence[Column]) -> tuple[list[Values], pa.Array]:
    """(the distinct tuples of the columns of text, the position of each row's tuple among them)."""
    encoded = [encode(c) for c in columns]
    if len(encoded) == 1:
        dictionary, codes = encoded[0]
        return [(v,) for v in dictionary], pa.array(codes)
    # Mixed radix: one number a row. Codes are renumbered after each column, so it stays small.
    rows = np.zeros(len(columns[0]), dtype=np.int64)
    tuples: list[Values] = [()]
    for dictionary, codes in encoded:
        mixed, rows = np.unique(rows * len(dictionary) + codes, return_inverse=True)
        tuples = [(*tuples[m // len(dictionary)], dictionary[m % len(dictionary)]) for m in mixed]
    return tuples, pa.array(rows)


def encode(column: Column) -> tuple[list[str | None], np.ndarray]:
    """(the distinct values of a column of text in the order of their first row, the position of
    each row's value among them); NULL is a value like any other."""
    text = _text(column)
    chunks = text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    encoded = pc.dictionary_encode(pa.chunked_array(chunks, text.type), null_encoding="encode")
    if encoded.num_chunks == 0:
        return [], np.zeros(0, dtype=np.int32)
    codes = [c.indices.to_numpy(zero_copy_only=False) for c in encoded.chunks]
    return encoded.chunk(encoded.num_chunks - 1).dictionary.to_pylist(), np.concatenate(codes)


def _text(column: Column) -> Column:
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    raise ArgumentError(f"a column of type {column.type} where text is expected")
