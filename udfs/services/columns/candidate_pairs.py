"""Finds the pairs of texts that may be the same thing: the nearest by spelling, and by vectors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from blendfusion.models.embedders.cache import UnknownVectorError
from blendfusion.models.embedders.embedder import Embedder, Vectors
from blendfusion.models.vectors.tfidf import Nearest
from blendfusion.models.vectors.vector import products
from blendfusion.udfs.services.columns.closure import Pair
from blendfusion.udfs.services.columns.clusters import Numbers

_TEXTS_AT_ONCE = 1024
"""Rows of the matrix of cosines in memory."""
_DECIMALS = 4
"""Digits of similarities that count: further ones depend on the order of additions."""


@dataclass(slots=True)
class Candidates:
    """Pairs of texts that may be the same thing."""

    similar: dict[Pair, float] = field(default_factory=dict)
    """The similarity of each pair."""
    turn: dict[Pair, int] = field(default_factory=dict)
    """The place of each pair among those of one of its texts, the nearer one."""
    cut: dict[int, float] = field(default_factory=dict)
    """The texts of which further pairs are as similar as the last one, by that similarity."""

    @property
    def pairs(self) -> list[Pair]:
        """The most similar pair first; among equals, one pair of each text, then the next."""
        rounded = {pair: -round(one, _DECIMALS) for pair, one in self.similar.items()}
        return sorted(rounded, key=lambda pair: (rounded[pair], self.turn[pair], pair))

    def with_more(self, more: Candidates) -> Candidates:
        """These pairs together with the pairs ``more``; the texts that are cut are those of
        ``more``."""
        return Candidates({**more.similar, **self.similar}, {**more.turn, **self.turn}, more.cut)

    def keep(self, a: int, found: Sequence[tuple[int, float]]) -> None:
        for turn, (b, score) in enumerate(found):
            pair = min(a, b), max(a, b)
            self.similar[pair] = max(self.similar.get(pair, 0.0), score)
            self.turn[pair] = min(self.turn.get(pair, turn), turn)


def candidate_pairs(
    texts: Sequence[str],
    k: int,
    embedder: Embedder | None,
    known: Sequence[int] = (),
    only: Collection[int] | None = None,
) -> Candidates:
    """The pairs of each text with its ``k`` nearest; ties go to those next to it in alphabetical
    order.

    With an embedder, half of the nearest are those by vectors. ``known``: the numbers of the
    entities of the first texts, in which only later texts look for their nearest: the nearest text
    of each entity. ``only``: the texts that look for their nearest; None: all of these."""
    candidates = Candidates()
    if len(texts) < 2 or len(texts) == len(known):
        return candidates
    by_vectors = 0 if embedder is None else k // 2
    by_words = k - by_vectors
    words = Nearest(texts)
    for place in range(len(known), len(texts)) if only is None else sorted(only):
        near = partial(words.score, texts[place])
        found = _entities(place, near, by_words + 1, len(texts), known)
        candidates.keep(place, found[:by_words])
        if len(found) > by_words > 0 and found[-1][1] == found[-2][1] > 0:
            candidates.cut[place] = found[-1][1]
    if embedder is not None and by_vectors:
        for place, found in _nearest_by_vectors(texts, words, by_vectors, embedder, known):
            candidates.keep(place, found)
    return candidates


def _entities(
    place: int,
    near: Callable[[int], Sequence[tuple[int, float]]],
    k: int,
    size: int,
    known: Sequence[int],
) -> list[tuple[int, float]]:
    """The ``k`` nearest of other texts, one of each known entity. ``near`` returns a number of
    nearest texts; the number grows if many of them belong to one entity."""
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


def _nearest_by_vectors(
    texts: Sequence[str], words: Nearest, k: int, embedder: Embedder, known: Sequence[int]
) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    try:
        vectors = embedder.embed(texts)
    except UnknownVectorError:  # an estimate does not embed
        return
    for start in range(len(known), len(texts), _TEXTS_AT_ONCE):
        cosines = np.round(products(vectors[start : start + _TEXTS_AT_ONCE], vectors), _DECIMALS)
        for i, row in enumerate(cosines, start):
            row[i] = -np.inf
            order = np.lexsort((words.away(texts[i]), -row))
            near = partial(_with_scores, order, row)
            yield i, _entities(i, near, k, len(texts), known)


def _with_scores(order: Numbers, row: Vectors, wanted: int) -> list[tuple[int, float]]:
    return [(int(other), float(row[other])) for other in order[:wanted]]
