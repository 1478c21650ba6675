"""Finds the texts of a set with the most similar spelling: candidates of joins, without a model.

The measure is the cosine of TF-IDF weights (Salton and Buckley 1988) of words and of their
three-letter pieces, so that similar spellings and differently split words still match. Case,
accents and punctuation are ignored.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")
_PIECE = 3
_DECIMALS = 5
"""Digits of similarities that count: further ones depend on the order of additions."""


def normalize(text: str) -> str:
    """The words of a text in lower case, without accents and punctuation.

    >>> normalize("Café  'Noir', Paris")
    'cafe noir paris'
    """
    bare = "".join(
        c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c)
    )
    return " ".join(_WORD.findall(bare))


def terms(text: str) -> Counter[str]:
    """The words of a text and their three-letter pieces, with their counts; word boundaries count
    as blanks.

    >>> sorted(terms("Ab"))
    [' ab', ' ab ', 'ab ']
    """
    found: Counter[str] = Counter()
    for word in normalize(text).split():
        edged = f" {word} "
        found[edged] += 1
        if len(edged) > _PIECE:
            found.update(edged[i : i + _PIECE] for i in range(len(edged) - _PIECE + 1))
    return found


class Nearest:
    """An index over ``texts`` that finds those sharing the rarest words with another text."""

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [terms(text) for text in texts]
        holders = Counter(term for counts in counted for term in counts)
        self._size = len(texts)
        self._sorted = sorted(texts)
        order = sorted(range(len(texts)), key=texts.__getitem__)
        self._rank = np.empty(len(texts), dtype=np.int64)
        self._rank[order] = np.arange(len(texts))
        """The place of each text in alphabetical order."""
        self._rarity = {term: log(1 + len(texts) / n) for term, n in holders.items()}
        # The entries of a term are adjacent, in the order of texts.
        starts = accumulate(holders.values(), initial=0)
        self._spans = {
            term: (start, start + n)
            for (term, n), start in zip(holders.items(), starts, strict=False)
        }
        free = {term: start for term, (start, _) in self._spans.items()}
        total = sum(holders.values())
        self._texts = np.zeros(total, dtype=np.int32)
        self._weights = np.zeros(total, dtype=np.float32)
        for number, counts in enumerate(counted):
            weights = self._weigh(counts)
            length = sqrt(sum(w * w for w in weights.values())) or 1.0
            for term, weight in weights.items():
                at = free[term]
                free[term] = at + 1
                self._texts[at], self._weights[at] = number, weight / length

    def of(self, text: str, k: int) -> list[int]:
        """The positions of the ``k`` texts most similar to ``text`` (all, if there are fewer), best
        first; ties go to those next to it in alphabetical order."""
        return [place for place, _ in self.score(text, k)]

    def score(self, text: str, k: int) -> list[tuple[int, float]]:
        """The positions of the same texts, with their similarities from 0 to 1."""
        scores = np.zeros(self._size, dtype=np.float32)
        weights = self._weigh(terms(text))
        for term, weight in weights.items():
            start, stop = self._spans[term]
            scores[self._texts[start:stop]] += weight * self._weights[start:stop]
        length = sqrt(sum(w * w for w in weights.values())) or 1.0
        scores = np.round(scores / np.float32(length), _DECIMALS)
        near = np.arange(self._size)
        if k < self._size:
            # All candidates for the first k, including ties at the end.
            edge = np.partition(scores, self._size - k)[self._size - k]
            near = np.flatnonzero(scores >= edge)
        best = near[np.lexsort((self.away(text)[near], -scores[near]))][:k]
        return [(int(i), float(scores[i])) for i in best]

    def away(self, text: str) -> NDArray[np.int64]:
        """The distance of each text from ``text`` in alphabetical order, no two of them equal."""
        steps = self._rank - bisect_left(self._sorted, text)
        return np.abs(2 * steps) - (steps < 0)

    def cuts_a_tie(self, text: str, k: int) -> bool:
        """Whether another text is as similar to ``text`` as the last of its ``k`` nearest, and has
        something in common with it."""
        scores = [score for _, score in self.score(text, k + 1)]
        return len(scores) > k > 0 and scores[k] == scores[k - 1] > 0

    def _weigh(self, counts: Counter[str]) -> dict[str, float]:
        rarity = self._rarity
        return {t: (1 + log(n)) * rarity[t] for t, n in counts.items() if t in rarity}
