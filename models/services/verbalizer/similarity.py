"""The similarity of texts: the cosine of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from blendfusion.models.vectors.vector import products
from blendfusion.models.vectors.wordllama import WordLlamaEmbedder

_DIGITS = 6
"""Digits of a similarity: later ones of float sums differ between machines, and by the number of
texts."""


def similarities(question: str, texts: Sequence[str]) -> list[float]:
    """The cosines of the vectors of the question and of each text."""
    return [cosine for (cosine,) in cosines(texts, [question])]


def cosines(texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
    """The cosines of the vectors of each text, one row each, and of all ``others``."""
    # In single precision the sixth digit would depend on the other texts.
    vectors = _embedder().embed([*others, *texts]).astype(np.float64)
    table = products(vectors[len(others) :], vectors[: len(others)])
    return [[round(float(cosine), _DIGITS) for cosine in row] for row in table]


@lru_cache(maxsize=1)
def _embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()
