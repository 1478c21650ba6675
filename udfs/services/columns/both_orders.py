"""Compares two values by a model, in both orders if the model prefers a position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from blendfusion.udfs.services.columns.closure import Pair
from blendfusion.udfs.services.columns.comparisons import UNDECIDED

Preference: TypeAlias = "Callable[[Sequence[Pair]], Sequence[float | None]]"
"""The probability that the value shown first wins."""

MOST_SAMPLED = 16
BIAS = 0.1
"""The share of sampled pairs with another winner in the other order from which all pairs are asked
in both."""


class BothOrders:
    """A judge of pairs. Some of its first pairs are asked in both orders; if their winners depend
    on the order too often, so are all others. ``sampled``: how many at most."""

    def __init__(self, preference: Preference, sampled: int) -> None:
        self._preference = preference
        self._left = min(MOST_SAMPLED, sampled)
        self.sampled = 0
        self.turned = 0
        """Sampled pairs whose winner depends on the order."""
        self.questions = 0

    @property
    def is_biased(self) -> bool:
        return self.turned > BIAS * self.sampled

    def __call__(self, pairs: Sequence[Pair]) -> list[float | None]:
        # Half of the pairs are turned round, so that no position always has the lower place.
        shown = [pair if sum(pair) % 2 else pair[::-1] for pair in pairs]
        turned = [pair != own for pair, own in zip(pairs, shown, strict=True)]
        given = list(self._answers(shown))
        sample = 0 if self.is_biased else min(self._left, len(shown))
        if sample:
            self._sample(shown[:sample], given)
        if self.is_biased:
            done = sample if sample else 0
            rest = shown[done:]
            others = self._answers([pair[::-1] for pair in rest]) if rest else []
            given[done:] = list(map(_mean, given[done:], others))
        return [
            one if one is None or not own else 1 - one
            for one, own in zip(given, turned, strict=True)
        ]

    def _sample(self, shown: Sequence[Pair], given: list[float | None]) -> None:
        others = self._answers([pair[::-1] for pair in shown])
        for place, other in enumerate(others):
            one = given[place]
            self.turned += one is not None and other is not None and _differ(one, 1 - other)
            given[place] = _mean(one, other)
        self.sampled += len(shown)
        self._left -= len(shown)

    def _answers(self, pairs: Sequence[Pair]) -> Sequence[float | None]:
        self.questions += len(pairs)
        return self._preference(pairs)


def _differ(one: float, other: float) -> bool:
    return (one > UNDECIDED) != (other > UNDECIDED)


def _mean(one: float | None, other: float | None) -> float | None:
    """The mean of the first value's probability in both orders."""
    if one is None or other is None:
        return one if other is None else 1 - other
    return (one + 1 - other) / 2
