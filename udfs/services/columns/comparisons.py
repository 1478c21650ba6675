"""Comparisons of values by a judge: each pair is asked once, whatever the order of its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from blendfusion.udfs.services.columns.closure import Pair

Judge: TypeAlias = "Callable[[Sequence[Pair]], Sequence[float | None]]"
"""Gives for each pair the probability that its first value comes before its second; None without
an answer."""

UNDECIDED = 0.5


class Comparisons:
    """The answers about pairs of ``n`` values.

    ``usual``: a number for each value, the lowest first: the order of pairs that the judge leaves
    undecided. ``descending``: the order is turned round."""

    def __init__(self, judge: Judge, usual: Sequence[float], *, descending: bool = False) -> None:
        self._judge = judge
        self._usual = usual
        self._descending = descending
        self.known: dict[Pair, float] = {}
        """The probability that the first value of a pair, the one with the lower place, wins."""
        self.rounds = 0
        self.undecided = 0

    def wins(self, pairs: Sequence[Pair]) -> list[bool]:
        """Whether the first value of each pair comes before the second. Pairs are asked together,
        and those that are known not at all."""
        new = [pair for pair in dict.fromkeys(map(_in_order, pairs)) if pair not in self.known]
        if new:
            self.rounds += 1
            for pair, given in zip(new, self._judge(new), strict=True):
                self.known[pair] = UNDECIDED if given is None else given
                self.undecided += self.known[pair] == UNDECIDED
        return [self._wins(*pair) for pair in pairs]

    def _wins(self, a: int, b: int) -> bool:
        probable = self.known[a, b] if a < b else 1 - self.known[b, a]
        if probable == UNDECIDED:
            first = (self._usual[a], a) < (self._usual[b], b)
        else:
            first = probable > UNDECIDED
        return first != self._descending


def _in_order(pair: Pair) -> Pair:
    a, b = pair
    return (a, b) if a < b else (b, a)
