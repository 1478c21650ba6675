"""Finds the pairs of texts that may be the same thing: the nearest by spelling, and by vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from blendfusion.models.embedders.cache import UnknownVectorError
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.udfs.columns.closure import Pair
from blendfusion.udfs.text.tfidf import Nearest

_TEXTS_AT_ONCE = 1024
"""Rows of the matrix of cosines in memory."""
_DECIMALS = 4
"""Digits of similarities that count: further ones depend on the order of additions."""


def candidate_pairs(texts: Sequence[str], k: int, embedder: Embedder | None) -> list[Pair]:
    """The pairs of each text with its ``k`` nearest, the most similar pair first.

    With an embedder, half of the nearest are those by vectors."""
    if len(texts) < 2:
        return []
    by_vectors = 0 if embedder is None else k // 2
    similar: dict[Pair, float] = {}
    words = Nearest(texts)
    for place, text in enumerate(texts):
        for other, score in words.scored(text, k - by_vectors + 1):
            if other != place:
                _keep(similar, place, other, score)
    if embedder is not None and by_vectors:
        for place, other, score in _nearest_by_vectors(texts, by_vectors, embedder):
            _keep(similar, place, other, score)
    return sorted(similar, key=lambda pair: (-round(similar[pair], _DECIMALS), pair))


def _keep(similar: dict[Pair, float], a: int, b: int, score: float) -> None:
    pair = min(a, b), max(a, b)
    similar[pair] = max(similar.get(pair, 0.0), score)


def _nearest_by_vectors(
    texts: Sequence[str], k: int, embedder: Embedder
) -> Iterator[tuple[int, int, float]]:
    try:
        vectors = embedder.embed(texts)
    except UnknownVectorError:  # an estimate does not embed
        return
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        cosines = np.round(vectors[start : start + _TEXTS_AT_ONCE] @ vectors.T, _DECIMALS)
        for i, row in enumerate(cosines, start):
            row[i] = -np.inf
            for other in np.argsort(-row, kind="stable")[:k].tolist():
                yield i, other, float(row[other])
