"""Certifies decisions of a ranking on both sides, by the ranks of a sample's positives and
negatives.

The method is that of models/guarantees/recall.py, on both sides. Values below one of the lowest
sampled positives get a no; values above one of the highest sampled negatives get a yes. Given the
number of positives in the sample, their identity is random, and likewise for negatives. These
numbers, never scores, determine the size of the sample and the ranks of the thresholds.

The number of negatives that may get a yes depends on the number of positives. A lower bound of that
number holds at every look (Clopper and Pearson, models/guarantees/accuracy.py), with a share of the
failure probability.
"""

from __future__ import annotations

import numpy as np

from blendfusion.models.guarantees.accuracy import (
    DELTA,
    YES,
    Decisions,
    Floats,
    Ints,
    Targets,
    lower,
)
from blendfusion.models.guarantees.recall import highest_place

_COUNT_SHARE = 0.1
"""Share of the failure probability for the number of positives; each side has half of the rest."""
_FIRST_LOOK, _GROWTH = 64, 1.5
_MOST_SHARE = 0.5
"""Maximum share of the values in the sample."""
_WANTED_PLACE = 12
"""The sample is complete once both thresholds may have this rank from their end. More ranks bring
the threshold nearer to the target."""
_SMALL_SHARE = 0.2
"""From this share of labelled values on, rank one suffices."""


class RankedPair:
    """Finds the values that need no label, by labels of a growing sample: the highest ``scores``
    get a yes, the lowest a no.

    ``order`` is a random permutation of the values, from which the sample is drawn. Callers answer
    ``next_to_label`` with ``tell`` until nothing is wanted; then ``decided`` holds. Recall and
    precision of all values meet ``targets`` with a probability of at least 1 - ``delta``; a label
    other than YES counts as no. ``affirmed`` counts other values with a known yes."""

    def __init__(self, scores: Floats, targets: Targets, order: Ints, *, affirmed: int = 0) -> None:
        assert targets.recall is not None
        assert targets.precision is not None
        self.scores, self._order, self._affirmed = scores, order, affirmed
        self._recall, self._precision = targets.recall, targets.precision
        self._delta = DELTA if targets.delta is None else targets.delta
        self._looks = _looks(len(scores))
        self._look = 0
        self.labelled = np.zeros(len(scores), dtype=np.bool_)
        self._yes = np.zeros(len(scores), dtype=np.bool_)
        self.decided = Decisions()

    @property
    def positives(self) -> int:
        """The positives of the sample."""
        return int(self._yes.sum())

    @property
    def next_to_label(self) -> Ints:
        """Positions of the values to label next; empty at the end."""
        if self._look >= len(self._looks) or self._enough:
            return self._order[:0]
        return self._order[self._sample_size : self._looks[self._look]]

    def tell(self, positions: Ints, labels: Ints) -> None:
        """Record the labels of the ``next_to_label`` positions."""
        self.labelled[positions] = True
        self._yes[positions[labels == YES]] = True
        self._look += 1
        if not len(self.next_to_label):
            self.decided = self._decide()

    @property
    def _sample_size(self) -> int:
        return self._looks[self._look - 1] if self._look else 0

    @property
    def _enough(self) -> bool:
        nearest = min(self._places)
        small = self._sample_size < _SMALL_SHARE * len(self.scores)
        return nearest >= (_WANTED_PLACE if small else 1)

    @property
    def _places(self) -> tuple[int, int]:
        """The ranks of the thresholds: among the sampled positives from the bottom, and the
        negatives from the top."""
        if not self._look:
            return 0, 0
        size, found, drawn = len(self.scores), self.positives, self._sample_size
        side = self._delta * (1 - _COUNT_SHARE) / 2
        counted = self._delta * _COUNT_SHARE / len(self._looks)
        positives = lower(size, drawn, found, counted)
        # All values that rightly get a yes, and the share of the negatives that may also get one.
        right = self._affirmed + self._recall * positives
        wrong = (1 - self._precision) / self._precision * right / max(1, size - positives)
        negative = highest_place(drawn - found, max(0.0, 1 - wrong), side)
        return highest_place(found, self._recall, side), negative

    def _decide(self) -> Decisions:
        positive, negative = self._places
        scores, above, below = self.scores, None, None
        if negative:
            highest = np.sort(scores[self.labelled & ~self._yes])[::-1]
            upper = scores[scores > highest[negative - 1]]
            above = float(upper.min()) if len(upper) else None
        if positive:
            lower_ones = scores < np.sort(scores[self._yes])[positive - 1]
            if above is not None:
                lower_ones &= scores < above
            below = float(scores[lower_ones].max()) if lower_ones.any() else None
        decided = Decisions(below, above)
        saved = int((decided.of(scores) & ~self.labelled).sum())
        return Decisions(below, above, saved) if saved else Decisions()


def _looks(size: int) -> list[int]:
    """The sizes of the sample at each look."""
    looks, drawn = [], float(_FIRST_LOOK)
    while drawn <= _MOST_SHARE * size:
        looks.append(int(drawn))
        drawn *= _GROWTH
    return looks or ([size // 2] if size > 1 else [])
