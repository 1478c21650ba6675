"""Compares rows by hashes of their content: rows that an index has already, and rows that are
gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

HASH_BYTES = 16
HASH = pa.binary(HASH_BYTES)
Hashes = npt.NDArray[np.bytes_]
"""An array of type S16. numpy ignores trailing zeros in comparisons, on both sides alike."""


def text_hashes(texts: pa.Array) -> pa.Array:
    """The blake2b hash of each text; texts are not NULL."""
    found = [blake2b(t.encode(), digest_size=HASH_BYTES).digest() for t in texts.to_pylist()]
    return pa.array(found, HASH)


def row_hashes(columns: Sequence[pa.Array]) -> pa.Array:
    """The hash of each row, over all its values as text, each with its length."""
    parts = []
    for column in columns:
        texts = _texts(column)
        lengths = pc.cast(pc.binary_length(texts), pa.string())
        measured = pc.binary_join_element_wise(lengths, texts, ":")
        parts.append(pc.fill_null(measured, "-"))
    return text_hashes(pc.binary_join_element_wise(*parts, " "))


def _texts(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if not (pa.types.is_nested(kind) or _is_bytes(kind)):
        try:
            return column.cast(pa.string())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            pass
    return pa.array([None if v is None else repr(v) for v in column.to_pylist()], pa.string())


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)


@dataclass(slots=True)
class _Places:
    """Row ids sorted by the hashes of the rows."""

    keys: Hashes
    """The distinct hashes, sorted."""
    starts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint64]

    def find(self, hashes: Hashes) -> npt.NDArray[np.int64]:
        """The position of each hash among ``keys``, or -1."""
        if not len(self.keys):
            return np.full(len(hashes), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.keys, hashes), len(self.keys) - 1)
        return np.where(self.keys[at] == hashes, at, -1)


def _places(hashes: pa.ChunkedArray, ids: pa.ChunkedArray) -> _Places:
    raw = as_numpy(hashes)
    order = np.argsort(raw, kind="stable")
    keys, starts, counts = np.unique(raw[order], return_index=True, return_counts=True)
    return _Places(keys, starts, counts, ids.to_numpy()[order])


def as_numpy(hashes: pa.Array | pa.ChunkedArray) -> Hashes:
    """The hashes in the type in which they are compared and sorted."""
    whole = hashes.combine_chunks() if isinstance(hashes, pa.ChunkedArray) else hashes
    kind = f"S{HASH_BYTES}"
    if not len(whole):
        return np.zeros(0, dtype=kind)
    return np.frombuffer(
        whole.buffers()[1], kind, count=len(whole), offset=whole.offset * HASH_BYTES
    )


class IndexedRows:
    """The rows of an index; each equal row can be matched once.

    It takes 56 bytes per row.
    """

    def __init__(self, rows: pa.ChunkedArray, texts: pa.ChunkedArray, ids: pa.ChunkedArray) -> None:
        self._rows = _places(rows, ids)
        self._left = self._rows.counts.copy()
        self._texts = _places(texts, ids)

    def new(self, rows: pa.Array) -> npt.NDArray[np.int64]:
        """The positions of the rows, given by their hashes, that the index lacks."""
        hashes = as_numpy(rows)
        distinct, of, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        at = self._rows.find(distinct)
        met = np.where(at >= 0, np.minimum(self._left[at], counts), 0) if len(self._left) else 0
        met = np.broadcast_to(met, at.shape)
        self._left[at[at >= 0]] -= met[at >= 0]
        # The number of each row among equal ones; the first ones are those already matched.
        order = np.argsort(of, kind="stable")
        number = np.empty(len(of), dtype=np.int64)
        number[order] = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.flatnonzero(number >= met[of])

    def gone_ids(self) -> npt.NDArray[np.uint64]:
        """The ids of the unmatched rows."""
        found = [
            self._rows.ids[self._rows.starts[at] : self._rows.starts[at] + self._left[at]]
            for at in np.flatnonzero(self._left)
        ]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.uint64)

    def with_text(self, texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """(positions, ids): for each text, given by its hash, that some row has, one such row."""
        at = self._texts.find(as_numpy(texts))
        positions = np.flatnonzero(at >= 0)
        return positions, self._texts.ids[self._texts.starts[at[positions]]]
