"""Which texts of a set are most like a text, in its words or in what it means: candidates of a join whose
matches need not look alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blendfusion.models.embedders.embedder import Embedder, Vectors
from blendfusion.udfs.text.tfidf import Nearest


class NearestInMeaning:
    """``texts`` by their vectors, beside ``words``, which finds them by their words."""

    def __init__(self, texts: Sequence[str], words: Nearest, embedder: Embedder) -> None:
        self._words = words
        self._vectors = embedder.embed(texts)

    def of(self, text: str, vector: Vectors, k: int) -> list[int]:
        """The positions of ``k`` texts (all, if they are fewer): the nearest by words, the nearest by vectors,
        the next by words, and so on, none twice; of equals the earlier."""
        by_words = self._words.of(text, k)
        cosines = self._vectors @ vector
        by_vectors = np.lexsort((np.arange(len(cosines)), -np.round(cosines, 6)))[:k].tolist()
        in_turn = [i for pair in zip(by_words, by_vectors, strict=True) for i in pair]
        return list(dict.fromkeys(in_turn))[:k]
