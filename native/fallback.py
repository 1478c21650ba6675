"""The specification of the native kernels, in Arrow and NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def encode_text(chunks: Sequence[pa.Array]) -> tuple[pa.Array, np.ndarray]:
    """Number the distinct texts of a column that comes in chunks.

    Returns (the distinct texts, a large string array in the order of their first row, NULL among
    them if it occurs; the number of each row's text as int32). ``chunks`` are string arrays.
    """
    column = pa.chunked_array(chunks, pa.string())
    encoded = pc.dictionary_encode(column, null_encoding="encode")  # one dictionary for all chunks
    if encoded.num_chunks == 0:
        return pa.array([], pa.large_string()), np.zeros(0, dtype=np.int32)
    codes = [c.indices.to_numpy(zero_copy_only=False) for c in encoded.chunks]
    return encoded.chunk(encoded.num_chunks - 1).dictionary.cast(pa.large_string()), np.concatenate(
        codes
    )


def attention(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, visible: np.ndarray, scale: float
) -> np.ndarray:
    """What each query takes of the values that it sees, by the softmax of its scaled products with
    their keys (Vaswani et al., "Attention Is All You Need", 2017).

    ``queries``: tokens × heads × dimensions; ``keys`` and ``values``: cells × their heads ×
    dimensions, each head for as many heads of queries; ``visible``: tokens × cells, of which every
    token sees one. Float64, shaped as ``queries``."""
    group = queries.shape[1] // keys.shape[1]
    keys, values = (np.repeat(held.astype(np.float64), group, axis=1) for held in (keys, values))
    scores = np.einsum("thd,chd->htc", queries.astype(np.float64), keys) * scale
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    taken: np.ndarray = np.einsum("htc,chd->thd", weights, values)
    return taken
