"""Ranks values by comparisons of pairs: the first ones, the last ones, or all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log2

import numpy as np
import numpy.typing as npt

from blendfusion.udfs.services.columns.closure import Pair
from blendfusion.udfs.services.columns.comparisons import Comparisons, Judge
from blendfusion.udfs.services.columns.sample_sort import sample_sorted
from blendfusion.udfs.services.columns.tournament import first_places

CONTRADICTED = 0.3
"""The share of checked pairs that contradict the order from which the most likely strengths, by all
answers, are the order instead. Below it, the order is nearer to the truth (benchmarks/lab.md)."""

_FURTHEST = 10
"""Checked pairs are up to a tenth of the values apart."""

_HELD, _HELD_BY_SCORES = 0.1, 0.3
"""The weight of the prior of strengths, without scores and with them."""
_SPREAD = 1.5
"""The standard deviation of prior strengths."""
_STEPS = 60


@dataclass(slots=True)
class Ranking:
    """The order of ``n`` values, as far as it is wanted, and how it was found."""

    n: int
    places: list[int] = field(default_factory=list)
    """The first places in their order; for the last places, the last one first."""
    pairs: int = 0
    rounds: int = 0
    undecided: int = 0
    checked: int = 0
    contradicted: int = 0
    """Checked pairs whose answer contradicts those that imply their order: they form a cycle."""
    refitted: bool = False

    def __str__(self) -> str:
        """
        >>> print(Ranking(9, [4, 1], 12, rounds=5, checked=2, contradicted=1))
        2 of 9 values in order; 12 pairs compared in 5 rounds; 1 of 2 implied pairs checked is
        cyclic"""
        wanted = "all" if len(self.places) == self.n else f"{len(self.places):,} of"
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds:,} rounds"
        undecided = f", {self.undecided:,} undecided" if self.undecided else ""
        verb = "is" if self.contradicted == 1 else "are"
        check = (
            f"; {self.contradicted:,} of {self.checked:,} implied pairs checked {verb} cyclic"
            if self.checked
            else ""
        )
        refitted = ", so all answers together decide" if self.refitted else ""
        return (
            f"{wanted} {self.n:,} values in order; {self.pairs:,} pairs compared in {rounds}"
            f"{undecided}{check}{refitted}"
        )


def most_pairs(n: int, k: int) -> int:
    """The maximum number of pairs for the first ``k`` of ``n`` values."""
    return int(n + 2 * k * log2(n)) if n > 1 else 0


def strengths_of(scores: Sequence[float | None]) -> list[float]:
    """Scores in units of strength; values without a score have the mean."""
    given = np.array([np.nan if score is None else score for score in scores])
    if np.isnan(given).all() or not np.nanstd(given):
        return [0.0] * len(given)
    strengths = _SPREAD * (given - np.nanmean(given)) / np.nanstd(given)
    filled: list[float] = np.nan_to_num(strengths).tolist()
    return filled


def ranking(
    n: int,
    judge: Judge,
    k: int | None,
    strengths: Sequence[float] | None = None,
    check: int | None = None,
) -> Ranking:
    """The order of ``n`` values: the first ``k``, the last ``-k`` if it is negative, or all.

    ``strengths``: the prior strength of each value, which decides about pairs that the judge leaves
    undecided. ``check``: the number of pairs that are asked although their order follows; by
    default half as many as there are values in order, as far as ``most_pairs`` allows."""
    wanted = n if k is None else min(n, abs(k))
    prior = np.zeros(n) if strengths is None else np.asarray(strengths, dtype=float)
    descending = k is not None and k < 0
    comparisons = Comparisons(judge, (-prior).tolist(), descending=descending)
    found = Ranking(n)
    if 2 * wanted >= n:  # as many comparisons, but fewer rounds
        order = sample_sorted(range(n), comparisons)
    else:
        order = first_places(range(n), wanted, comparisons)
    pairs = _implied_pairs(order, comparisons.known, n)
    most = max(0, most_pairs(n, wanted) - len(comparisons.known))
    pairs = pairs[: min(most, len(order) // 2) if check is None else check]
    wins = comparisons.wins(pairs) if pairs else []
    found.checked, found.contradicted = len(pairs), wins.count(False)
    if found.contradicted > CONTRADICTED * found.checked:
        found.refitted = True
        fitted = _strengths(
            comparisons.known, prior, _HELD if strengths is None else _HELD_BY_SCORES
        )
        sign = 1 if descending else -1
        order = [int(place) for place in np.argsort(sign * fitted, kind="stable")]
    found.places = order[:wanted]
    found.pairs, found.rounds = len(comparisons.known), comparisons.rounds
    found.undecided = comparisons.undecided
    return found


def _implied_pairs(order: Sequence[int], known: Mapping[Pair, float], n: int) -> list[Pair]:
    """Pairs of the order that were not asked, those evenly spread first."""
    furthest = max(2, n // _FURTHEST)
    spread = [(i, i + 2 + 7 * i % (furthest - 1)) for i in range(len(order) - 2)]
    pairs = [(order[i], order[j]) for i, j in spread if j < len(order)]
    return [(a, b) for a, b in pairs if (min(a, b), max(a, b)) not in known]


def _strengths(
    known: Mapping[Pair, float], prior: npt.NDArray[np.float64], held: float
) -> npt.NDArray[np.float64]:
    """The most likely strengths in the model of Bradley and Terry (1952), with a normal prior."""
    first, second = (np.array(side) for side in zip(*known, strict=True))
    won = np.array([*known.values()])
    strengths = prior.copy()
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(strengths[second] - strengths[first]))
        slope = held * (prior - strengths)
        curve = np.full(len(prior), held)
        for side, sign in ((first, 1), (second, -1)):
            np.add.at(slope, side, sign * (won - likely))
            np.add.at(curve, side, likely * (1 - likely))
        strengths = strengths + 0.7 * slope / curve
    result: npt.NDArray[np.float64] = strengths
    return result
