"""The similarity of a question and texts: the cosine of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from blendfusion.models.vectors.wordllama import WordLlamaEmbedder

_DIGITS = 6
"""Digits of a similarity: later ones of float sums differ between machines."""


def similarities(question: str, texts: Sequence[str]) -> list[float]:
    """The cosines of the vectors of the question and of each text."""
    vectors = _embedder().embed([question, *texts])
    return [round(float(cosine), _DIGITS) for cosine in vectors[1:] @ vectors[0]]


@lru_cache(maxsize=1)
def _embedder() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()
