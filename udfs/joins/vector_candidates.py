"""Finds the texts most similar to a text by spelling or by meaning: candidates of joins with a
criterion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blendfusion.models.embedders.embedder import Embedder, Vectors
from blendfusion.models.vectors.tfidf import Nearest
from blendfusion.models.vectors.vector import products


class NearestInMeaning:
    """``texts`` by their vectors, beside ``words``, which finds them by spelling."""

    def __init__(self, texts: Sequence[str], words: Nearest, embedder: Embedder) -> None:
        self._words = words
        self._vectors = embedder.embed(texts)

    def of(self, text: str, vector: Vectors, k: int) -> list[int]:
        """The positions of ``k`` texts (all, if there are fewer), without repetition: the nearest
        by spelling and by vectors in turn; ties go to those next to it in alphabetical order."""
        by_words = self._words.of(text, k)
        cosines = np.round(products(self._vectors, vector), 6)
        by_vectors = np.lexsort((self._words.away(text), -cosines))[:k].tolist()
        in_turn = [i for pair in zip(by_words, by_vectors, strict=True) for i in pair]
        return list(dict.fromkeys(in_turn))[:k]
