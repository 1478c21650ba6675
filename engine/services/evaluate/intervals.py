"""Intervals of figures that come from a sample, and tests of a difference of two.

Each interval has a width also where a small sample has no error, which a bootstrap does not. Sizes
of samples may be fractions: they are effective sizes where rows repeat values
(``distinct_values``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, exp, sqrt
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Interval: TypeAlias = tuple[float, float]
Numbers: TypeAlias = "NDArray[np.floating[Any]]"

LEVEL = 0.95
_SIMULATED, _SEED = 400, 20
_STEPS = 60
"""Halvings of a bisection."""


def wilson(found: float, sampled: float, level: float = LEVEL) -> Interval:
    """The interval of a share if ``found`` of ``sampled`` have a property: Wilson (1927). (0, 1)
    without a sample.

    >>> [round(bound, 3) for bound in wilson(45, 50)]
    [0.786, 0.957]
    """
    if not sampled:
        return 0.0, 1.0
    z = _normal(level)
    share, spread = found / sampled, z * z / sampled
    middle = (share + spread / 2) / (1 + spread)
    half = z * sqrt(share * (1 - share) / sampled + spread / sampled / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def mean_of_shares(found: Numbers, sampled: Numbers, level: float = LEVEL) -> Interval:
    """The interval of the mean of independent shares, ``found`` of ``sampled`` each: Price and
    Bonett (2004)."""
    more = 2 / len(found)
    sizes = sampled + 2 * more
    shares = (found + more) / sizes
    half = _normal(level) * sqrt(float((shares * (1 - shares) / sizes).sum())) / len(found)
    return max(0.0, float(shares.mean()) - half), min(1.0, float(shares.mean()) + half)


def macro_f1_interval(counts: Numbers, level: float = LEVEL) -> Interval:
    """The interval of the mean F1 of the classes of a table of counts: the delta method for a
    multinomial table, with two rows more, spread as in ``mean_of_shares``."""
    classes = len(counts)
    more = np.full(counts.shape, 2 / classes / max(1, classes - 1))
    np.fill_diagonal(more, 2 / classes)
    table = counts + more
    of_class = table.sum(0) + table.sum(1)
    f1 = 2 * np.diag(table) / of_class
    slopes = -((f1 / of_class)[:, None] + (f1 / of_class)[None, :]) + np.diag(2 / of_class)
    slopes /= classes
    total = float(table.sum())
    spread = float((table * slopes**2).sum()) - float((table * slopes).sum()) ** 2 / total
    half = _normal(level) * sqrt(max(0.0, spread))
    return max(0.0, float(f1.mean()) - half), min(1.0, float(f1.mean()) + half)


def mean_interval(mean: float, error: float, freedom: int, level: float = LEVEL) -> Interval:
    """The interval of a positive mean with its standard error, by Student's t on the logarithm.
    The upper bound is NaN for a mean of 0, whose scale is unknown."""
    if not mean:
        return 0.0, float("nan")
    factor = exp(_student(level, freedom) * error / mean) if freedom else float("inf")
    return mean / factor, mean * factor


def area_interval(area: float, yes: float, no: float, level: float = LEVEL) -> Interval:
    """The interval of an area under the ROC curve of ``yes`` positive and ``no`` negative rows:
    Newcombe (2006), method 5, which inverts the score test with the variance of Hanley and McNeil
    (1982).

    >>> [round(bound, 3) for bound in area_interval(1.0, 20, 20)]
    [0.899, 1.0]
    """
    z, half = _normal(level), (yes + no) / 2 - 1

    def possible(true: float) -> bool:
        ties = (1 - true) / (2 - true) + true / (1 + true)
        return abs(area - true) <= z * sqrt(true * (1 - true) * (1 + half * ties) / (yes * no))

    return _edge(possible, area, 0.0), _edge(possible, area, 1.0)


def _edge(possible: Callable[[float], bool], inside: float, outside: float) -> float:
    """The last possible value between one that is possible and an end of the range."""
    if possible(outside):
        return outside
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if possible(middle) else (inside, middle)
    return inside


def calibration_interval(
    confidence: Numbers,
    accuracy: Numbers,
    sampled: Numbers,
    level: float = LEVEL,
) -> Interval:
    """The interval of an expected calibration error, from the mean confidence, the accuracy and
    the size of each bin.

    The error of a sample is above the true one: noise of every bin adds to it. So the interval
    holds the true errors under which the observed one is not extreme, by simulation with a fixed
    seed. The gaps of the bins are in proportion to the square roots of the observed ones.
    """
    weights, sizes = sampled / sampled.sum(), np.maximum(1, np.round(sampled)).astype(np.int64)
    observed = float(np.abs(confidence - accuracy) @ weights)
    gaps = np.sign(confidence - accuracy) * np.sqrt(np.abs(confidence - accuracy))
    gaps = gaps / (np.abs(gaps) @ weights) if gaps.any() else np.ones(len(gaps))
    smooth = (accuracy * sizes + 0.5) / (sizes + 1)
    noise = sqrt(float((weights**2 * smooth * (1 - smooth) / sizes).sum()))
    reach = 5 * noise + (observed if sizes.sum() < 150 else 0)
    tried = np.unique(np.maximum(0, observed + np.linspace(-reach, reach, 2 * _STEPS + 1)))
    true = np.clip(confidence - np.outer(tried, gaps), 0, 1)
    errors = np.abs(confidence - true) @ weights
    rng = np.random.default_rng(_SEED)
    right = rng.binomial(sizes, true, size=(_SIMULATED, *true.shape)) / sizes
    drawn = np.abs(confidence - right) @ weights
    tail = 0.5 - level / 2
    lows = errors[(drawn >= observed - 1e-12).mean(0) >= tail]
    highs = errors[(drawn <= observed + 1e-12).mean(0) >= tail]
    return min([observed, *lows]), max([observed, *highs])


def sign_test(better: int, worse: int) -> float:
    """The probability of at least ``better`` of the values that changed if a change were as likely
    for the worse: McNemar's exact test (1947), one-sided. 1.0 without a change.

    >>> sign_test(9, 1), sign_test(0, 0)
    (0.0107421875, 1.0)
    """
    changed = better + worse
    return float(sum(comb(changed, k) for k in range(better, changed + 1)) / 2**changed)


def correct(p_values: Sequence[float]) -> list[float]:
    """The p-values of several tests such that one of them is at most p by chance with a probability
    of at most p: Holm (1979).

    >>> correct([0.01, 0.04, 0.5])
    [0.03, 0.08, 0.5]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    found, highest = [0.0] * len(p_values), 0.0
    for place, number in enumerate(order):
        highest = max(highest, min(1.0, p_values[number] * (len(order) - place)))
        found[number] = highest
    return found


def _normal(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def _student(level: float, freedom: int) -> float:
    """The quantile of Student's t: the expansion of Abramowitz and Stegun (1964), 26.7.5."""
    z = _normal(level)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum((term / freedom ** (i + 1) for i, term in enumerate(terms)), 0.0)
