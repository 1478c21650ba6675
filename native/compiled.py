"""The compiled kernels, with the interface of ``fallback``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from blendfusion.native import _kernels


def encode_text(chunks: Sequence[pa.Array]) -> tuple[pa.Array, np.ndarray]:
    """As ``fallback.encode_text``."""
    rows = sum(map(len, chunks))
    codes = np.empty(rows, dtype=np.int32)
    # ``chunks`` hold the buffers until the call is over.
    offsets, data, null = _kernels.encode([_addresses(c) for c in chunks], rows, codes.ctypes.data)
    length = len(offsets) // 8 - 1
    validity = None
    if null >= 0:
        valid = np.ones(length, dtype=np.uint8)
        valid[null] = 0
        validity = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), length, buffers), codes


def _addresses(array: pa.Array) -> tuple[int, int, int, int, int]:
    validity, offsets, data = array.buffers()
    return (
        validity.address if validity is not None and array.null_count else 0,
        offsets.address if offsets is not None else 0,
        data.address if data is not None else 0,
        array.offset,
        len(array),
    )
