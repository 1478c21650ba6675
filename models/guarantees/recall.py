"""Certifies the values that a ranking may rule out, by the ranks of a sample's positives.

The sample is drawn uniformly from all values. Of its positives, in the order of their scores, the
k-th from the bottom is the threshold. Too many of all positives lie below it only if fewer than k
of the sampled ones are in the lowest share of them. That is as improbable as fewer than k heads of
a coin (the order statistics of Wilks 1941; a sample without replacement is less extreme than coins,
Hoeffding 1963). So it is one test, whatever the threshold. The number of positives, never their
scores, determines the size of the sample: given their number, their identity is random.

In contrast to models/guarantees/accuracy.py, which bounds the number of misses, this needs no bound
of the number of positives, and so fewer answers, but can guarantee recall only.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from blendfusion.models.guarantees.accuracy import YES, Decisions, Floats, Ints

_FIRST_LABELS = 64
_WANTED_PLACE = 12
"""The sample is complete once the twelfth positive from the bottom may be the threshold. One rank
suffices for validity; more ranks bring the threshold nearer to the target."""
_SMALL_SHARE = 0.1
"""From this share of labelled values on, rank one suffices."""
_BISECTIONS = 50


class RankedCertificate:
    """Finds the values with the lowest ``scores`` that need no label, by labels of a growing
    sample.

    ``order`` is a random permutation of the values, from which the sample is drawn. Callers answer
    ``next_to_label`` with ``tell`` until nothing is wanted; then ``decided`` holds. Among all
    values with the label YES, at least the share ``recall`` is undecided or sampled, with a
    probability of at least 1 - ``delta``. A NaN score is above all others, so such a value is not
    ruled out."""

    def __init__(self, scores: Floats, recall: float, delta: float, order: Ints) -> None:
        self.scores = np.where(np.isnan(scores), np.inf, scores)
        self.recall, self.delta = recall, delta
        self._order = order
        self._sampled = 0
        self._positives: list[float] = []
        self.decided = Decisions()

    @property
    def positives(self) -> int:
        """The positives of the sample."""
        return len(self._positives)

    @property
    def place(self) -> int:
        """The rank, from the bottom, of the sampled positive that is the threshold; 0 with too few
        positives."""
        return highest_place(self.positives, self.recall, self.delta)

    @property
    def certain_recall(self) -> float:
        """The certain share of all positives, at least the target; 0 without a threshold."""
        return certain_share(self.positives, self.place, self.delta) if self.place else 0.0

    @property
    def next_to_label(self) -> Ints:
        """Positions of the values to label next; empty at the end."""
        size, found = len(self.scores), self.positives
        enough = found >= fewest(_WANTED_PLACE, self.recall, self.delta) or (
            self._sampled >= _SMALL_SHARE * size and self.place > 0
        )
        if enough or self.recall >= 1:
            return self._order[:0]
        more = _FIRST_LABELS
        if self._sampled:
            # As many as the rate of positives so far requires, and no more than the sample has so
            # far.
            missing = fewest(_WANTED_PLACE, self.recall, self.delta) - found
            more = min(
                self._sampled, max(_FIRST_LABELS // 4, missing * self._sampled // max(found, 1))
            )
        return self._order[self._sampled : self._sampled + more]

    def tell(self, positions: Ints, labels: Ints) -> None:
        """Record the labels of the ``next_to_label`` positions."""
        self._sampled += len(positions)
        self._positives = sorted(
            [*self._positives, *self.scores[positions[labels == YES]].tolist()]
        )
        self.decided = Decisions()
        if self.place and not len(self.next_to_label):
            threshold = self._positives[self.place - 1]
            lower = self.scores[self.scores < threshold]
            if len(lower):
                self.decided = Decisions(below=float(lower.max()))


@lru_cache(maxsize=1 << 12)
def highest_place(positives: int, recall: float, delta: float) -> int:
    """The highest rank, from the bottom, of a sampled positive above which lies the share
    ``recall`` of all positives, with a probability of at least 1 - ``delta``; 0 if none qualifies.

    >>> [highest_place(n, 0.9, 0.05) for n in (28, 29, 46, 89)]
    [0, 1, 2, 5]
    """
    place = 0
    while place < positives and _at_most(place, positives, 1 - recall) <= delta:
        place += 1
    return place


@lru_cache(maxsize=1 << 10)
def fewest(place: int, recall: float, delta: float) -> int:
    """The minimum positives of a sample for that rank, without regard to the number of values.

    >>> fewest(1, 0.9, 0.05), fewest(5, 0.9, 0.05)
    (29, 89)
    """
    if recall >= 1:
        return 1 << 62
    positives = place
    while _at_most(place - 1, positives, 1 - recall) > delta:
        positives += 1
    return positives


def certain_share(positives: int, place: int, delta: float) -> float:
    """The share of all positives above the one at rank ``place``, with a probability of 1 -
    ``delta``.

    >>> round(certain_share(29, 1, 0.05), 3), round(certain_share(60, 1, 0.05), 3)
    (0.902, 0.951)
    """
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        share = (low + high) / 2
        low, high = (
            (share, high) if _at_most(place - 1, positives, 1 - share) <= delta else (low, share)
        )
    return low


def _at_most(heads: int, coins: int, odds: float) -> float:
    """The probability of at most ``heads`` heads of ``coins`` coins; ``odds``: the probability of
    one."""
    if odds >= 1:
        return float(heads >= coins)
    term = total = float((1 - odds) ** coins)
    for i in range(min(heads, coins)):
        term *= (coins - i) / (i + 1) * odds / (1 - odds)
        total += term
    return min(1.0, total)
