"""Clusters of unit vectors by spherical k-means, the same in every run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from blendfusion.models.embedders.embedder import Vectors, normalise
from blendfusion.models.vectors.vector import products

Numbers = npt.NDArray[np.int64]

_STARTS = 4
_ROUNDS = 30
_DECIMALS = 5
"""Digits of cosines that count: further ones depend on the order of additions."""


def clusters(vectors: Vectors, k: int) -> Numbers:
    """The number of the cluster of each vector, below ``k``; clusters may be empty. The best of a
    few starts by k-means++ (Arthur and Vassilvitskii 2007), whose random numbers are fixed."""
    random = np.random.default_rng(0)
    best, most = np.zeros(len(vectors), np.int64), -np.inf
    for _ in range(_STARTS):
        numbers, near = _settle(vectors, _first_centres(vectors, k, random))
        if near > most + 10**-_DECIMALS:
            best, most = numbers, near
    return best


def nearest_first(vectors: Vectors) -> list[int]:
    """The positions of vectors, those nearest to their mean first; ties go to the earlier."""
    cosines = np.round(products(vectors, _centre(vectors)), _DECIMALS)
    return [int(i) for i in np.argsort(-cosines, kind="stable")]


def _first_centres(vectors: Vectors, k: int, random: np.random.Generator) -> Vectors:
    chosen = [int(random.integers(len(vectors)))]
    distances = np.full(len(vectors), np.inf)
    while len(chosen) < k:
        distances = np.minimum(distances, _distances(vectors, vectors[chosen[-1]]))
        total = distances.sum()
        if total <= 0:  # fewer different vectors than clusters
            break
        reached = np.searchsorted(np.cumsum(distances), random.random() * total, side="right")
        chosen.append(int(min(reached, len(vectors) - 1)))
    return vectors[chosen]


def _distances(vectors: Vectors, centre: Vectors) -> npt.NDArray[np.float64]:
    cosines = np.round(products(vectors, centre).astype(np.float64), _DECIMALS)
    distances: npt.NDArray[np.float64] = np.maximum(0.0, 1.0 - cosines)
    return distances


def _settle(vectors: Vectors, centres: Vectors) -> tuple[Numbers, float]:
    """(the clusters when they no longer change, the sum of cosines with their centres)"""
    numbers = np.full(len(vectors), -1, np.int64)
    near = 0.0
    for _ in range(_ROUNDS):
        cosines = np.round(products(vectors, centres), _DECIMALS)
        now = cosines.argmax(axis=1)
        near = float(cosines[np.arange(len(now)), now].sum())
        if np.array_equal(now, numbers):
            break
        numbers = now
        centres = np.stack(
            [
                _centre(vectors[numbers == c]) if (numbers == c).any() else centres[c]
                for c in range(len(centres))
            ]
        )
    return numbers, near


def _centre(vectors: Vectors) -> Vectors:
    centre: Vectors = normalise(vectors.mean(axis=0, keepdims=True))[0]
    return centre
