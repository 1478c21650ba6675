"""Finds the pairs of texts that may be the same thing: the nearest by spelling, and by vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from blendfusion.models.embedders.cache import UnknownVectorError
from blendfusion.models.embedders.embedder import Embedder, Vectors
from blendfusion.models.vectors.tfidf import Nearest
from blendfusion.udfs.columns.closure import Pair
from blendfusion.udfs.columns.clusters import Numbers

_TEXTS_AT_ONCE = 1024
"""Rows of the matrix of cosines in memory."""
_DECIMALS = 4
"""Digits of similarities that count: further ones depend on the order of additions."""


def candidate_pairs(
    texts: Sequence[str],
    k: int,
    embedder: Embedder | None,
    known: Sequence[int] = (),
) -> list[Pair]:
    """The pairs of each text with its ``k`` nearest, the most similar pair first.

    With an embedder, half of the nearest are those by vectors. ``known``: the numbers of the
    entities of the first texts, in which only later texts look for their nearest: the nearest text
    of each entity."""
    if len(texts) < 2 or len(texts) == len(known):
        return []
    by_vectors = 0 if embedder is None else k // 2
    similar: dict[Pair, float] = {}
    words = Nearest(texts)
    for place in range(len(known), len(texts)):
        near = partial(words.scored, texts[place])
        for other, score in _entities(place, near, k - by_vectors, len(texts), known):
            _keep(similar, place, other, score)
    if embedder is not None and by_vectors:
        for place, other, score in _nearest_by_vectors(texts, by_vectors, embedder, known):
            _keep(similar, place, other, score)
    return sorted(similar, key=lambda pair: (-round(similar[pair], _DECIMALS), pair))


def _entities(
    place: int,
    near: Callable[[int], Sequence[tuple[int, float]]],
    k: int,
    size: int,
    known: Sequence[int],
) -> list[tuple[int, float]]:
    """The ``k`` nearest of other texts, one of each known entity. ``near`` gives so many of the
    nearest texts, which are more the more of them are of one entity."""
    wanted = k + 1
    while True:
        found: dict[int, tuple[int, float]] = {}
        for other, score in near(wanted):
            if other != place:
                entity = known[other] if other < len(known) else -1 - other
                found.setdefault(entity, (other, score))
        if len(found) >= k or wanted >= size:
            return list(found.values())[:k]
        wanted *= 4


def _keep(similar: dict[Pair, float], a: int, b: int, score: float) -> None:
    pair = min(a, b), max(a, b)
    similar[pair] = max(similar.get(pair, 0.0), score)


def _nearest_by_vectors(
    texts: Sequence[str], k: int, embedder: Embedder, known: Sequence[int]
) -> Iterator[tuple[int, int, float]]:
    try:
        vectors = embedder.embed(texts)
    except UnknownVectorError:  # an estimate does not embed
        return
    for start in range(len(known), len(texts), _TEXTS_AT_ONCE):
        cosines = np.round(vectors[start : start + _TEXTS_AT_ONCE] @ vectors.T, _DECIMALS)
        for i, row in enumerate(cosines, start):
            row[i] = -np.inf
            order = np.argsort(-row, kind="stable")
            near = partial(_scored, order, row)
            for other, score in _entities(i, near, k, len(texts), known):
                yield i, other, score


def _scored(order: Numbers, row: Vectors, wanted: int) -> list[tuple[int, float]]:
    return [(int(other), float(row[other])) for other in order[:wanted]]
