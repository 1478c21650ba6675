"""Reads vectors from indexes by the hashes of their texts, so that known texts are not embedded
again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.models.embedders.embedder import Vectors
from blendfusion.services.search.build import TEXT_HASH, VECTOR
from blendfusion.services.search.hashes import HASH, as_numpy

if TYPE_CHECKING:
    import lance

    from blendfusion.services.search.snapshot import Snapshot


class TextPlaces:
    """The positions of texts in one version of an index. It takes 24 bytes per row."""

    def __init__(self, dataset: lance.LanceDataset) -> None:
        hashes = as_numpy(dataset.scanner(columns=[TEXT_HASH]).to_table()[TEXT_HASH])
        self._dataset = dataset
        self._hashes, self._places = np.unique(hashes, return_index=True)

    def vectors(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The vectors of the known texts among those with these hashes."""
        if not len(self._hashes):
            return {}
        wanted = as_numpy(pa.array(keys, HASH))
        at = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        places = np.unique(self._places[at[self._hashes[at] == wanted]])
        if not len(places):
            return {}
        found = self._dataset.take(places.tolist(), columns=[TEXT_HASH, VECTOR])
        column = found[VECTOR].combine_chunks()
        vectors = column.flatten().to_numpy().reshape(len(column), -1)
        return dict(zip(found[TEXT_HASH].to_pylist(), vectors, strict=True))


class VersionedIndex(Protocol):
    """An index whose newest version can be read."""

    def snapshot(self) -> Snapshot: ...


def stored_vectors(
    indexes: Mapping[str, VersionedIndex], fingerprint: str, keys: Sequence[bytes]
) -> dict[bytes, Vectors]:
    """The vectors of an embedder in any of the indexes, by the hashes of their texts.

    An unreadable index is skipped, since the embedder can compute its vectors.
    """
    found: dict[bytes, Vectors] = {}
    for index in tuple(indexes.values()):
        missing = [key for key in keys if key not in found]
        if not missing:
            break
        try:
            snapshot = index.snapshot()
            if snapshot.state.embedder == fingerprint:
                found |= snapshot.places.vectors(missing)
        except (QueryError, OSError, ValueError):
            continue
    return found
