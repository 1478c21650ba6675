"""Intervals of figures that come from a sample, and the test of a difference of two."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, sqrt
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Interval: TypeAlias = tuple[float, float]

LEVEL = 0.95
_RESAMPLES, _SEED = 1_000, 20


def wilson(found: int, sampled: int, level: float = LEVEL) -> Interval:
    """The interval of a share if ``found`` of ``sampled`` have a property: Wilson (1927). (0, 1)
    without a sample.

    >>> [round(bound, 3) for bound in wilson(45, 50)]
    [0.786, 0.957]
    """
    if not sampled:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share, spread = found / sampled, z * z / sampled
    middle = (share + spread / 2) / (1 + spread)
    half = z * sqrt(share * (1 - share) / sampled + spread / sampled / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def bootstrap(
    figure: Callable[[NDArray[np.intp]], float], rows: int, level: float = LEVEL
) -> Interval:
    """The percentile interval of ``figure``, a function of row numbers: Efron (1979).

    Rows are drawn with replacement 1,000 times, with a fixed seed. Draws without a figure (NaN) are
    left out; (NaN, NaN) if all are.
    """
    rng = np.random.default_rng(_SEED)
    drawn = np.array([figure(rng.integers(rows, size=rows)) for _ in range(_RESAMPLES)])
    return _percentiles(drawn, level)


def count_bootstrap(
    figure: Callable[[NDArray[np.int64]], float], counts: NDArray[np.int64], level: float = LEVEL
) -> Interval:
    """The bootstrap interval of a ``figure`` of a table of counts: drawing rows with replacement
    draws the counts from a multinomial distribution."""
    rng, total = np.random.default_rng(_SEED), int(counts.sum())
    tables = rng.multinomial(total, counts.ravel() / total, size=_RESAMPLES)
    return _percentiles(np.array([figure(t.reshape(counts.shape)) for t in tables]), level)


def _percentiles(drawn: NDArray[np.float64], level: float) -> Interval:
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def sign_test(better: int, worse: int) -> float:
    """The probability of at least ``better`` of the rows that changed if a change were as likely
    for the worse: McNemar's exact test (1947), one-sided. 1.0 without a change.

    >>> sign_test(9, 1), sign_test(0, 0)
    (0.0107421875, 1.0)
    """
    changed = better + worse
    return float(sum(comb(changed, k) for k in range(better, changed + 1)) / 2**changed)
