"""Bounds of totals from a sample without replacement.

``shares`` inverts the hypergeometric distribution: its bounds are exact for each size of sample and
population. ``means`` has the mean of the sample and of one more value at an end of the scale, with
random weights; how often it holds is measured (docs/approximate.md).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[np.float64]"
Places: TypeAlias = "NDArray[np.int64]"

_TINY = 1e-13
_AT_ONCE = 64
"""The terms of a sum that are computed together."""
_PARTS = (0.6, 0.8, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0)
"""The sizes of samples that are tried, as parts of the size by the normal distribution."""


def shares(found: Places, sampled: Places, rows: Places, alpha: float) -> tuple[Places, Places]:
    """The least and the greatest number of ``rows`` with a property of which ``found`` of
    ``sampled`` have it; each is wrong with a probability of at most ``alpha / 2``."""
    cases, back = np.unique(np.stack([found, sampled, rows]), axis=1, return_inverse=True)
    s, n, m = cases
    most = _greatest(s, n, m, alpha / 2)
    least = m - _greatest(n - s, n, m, alpha / 2)
    back = back.reshape(-1)
    return least[back], most[back]


def _greatest(found: Places, sampled: Places, rows: Places, alpha: float) -> Places:
    """The greatest number of rows for which so few in a sample have a probability above
    ``alpha``."""
    low, high = found.copy(), rows - sampled + found
    while (low < high).any():
        middle = (low + high + 1) // 2
        likely = _at_most(found, sampled, rows, middle) > alpha
        low, high = np.where(likely, middle, low), np.where(likely, high, middle - 1)
    return low


def _at_most(found: Places, sampled: Places, rows: Places, having: Places) -> Numbers:
    """The probability of at most so many in a sample, if ``having`` of the rows have the property;
    1 where that is more than a half."""
    s, n, m, k = (a.astype(np.float64) for a in (found, sampled, rows, having))
    few = s < n * k / m  # each number is less likely than the next one
    chance = _choices(k, s) + _choices(m - k, n - s) - _choices(m, n)
    term = np.where(few, np.exp(chance), 0.0)
    total, j = term.copy(), s
    while (term > _TINY * total).any():
        i = np.maximum(j[:, None] - np.arange(_AT_ONCE), 0.0)
        left = np.maximum((m - k - n)[:, None] + i, 0.0)
        ratios = i * left / ((k[:, None] - i + 1) * (n[:, None] - i + 1))
        terms = term[:, None] * np.cumprod(ratios, axis=1)
        total, term, j = total + terms.sum(axis=1), terms[:, -1], j - _AT_ONCE
    return np.where(few, total, 1.0)


def _choices(n: Numbers, k: Numbers) -> Numbers:
    """The logarithm of the number of ways to choose k of n."""
    return _factorials(n) - _factorials(k) - _factorials(n - k)


def _factorials(n: Numbers) -> Numbers:
    """The logarithms of factorials: Stirling's series, exact below 16."""
    large = np.maximum(n, 16.0)
    series = 1 / (12 * large) - 1 / (360 * large**3) + 1 / (1260 * large**5)
    stirling = large * np.log(large) - large + 0.5 * np.log(2 * np.pi * large) + series
    small = np.clip(n, 0, 15).astype(np.int64)
    found: Numbers = np.where(n < 16, _SMALL[small], stirling)
    return found


_SMALL = np.r_[0.0, np.cumsum(np.log(np.arange(1.0, 16.0)))]


def means(
    powers: tuple[Numbers, Numbers, Numbers], sampled: Numbers, rows: Numbers, alpha: float
) -> tuple[Numbers, Numbers]:
    """The bounds of the mean of ``rows`` values from 0 to 1 by a sample of these: together wrong
    with a probability of about ``alpha``. ``powers``: the sums of its values, of their squares and
    of their cubes.

    The upper bound is a quantile of the mean of the sample and of one more value, 1, under weights
    that are uniform among all that add up to 1. Where all values are 0 or 1, it is the exact one of
    the binomial distribution. The lower bound mirrors it.
    """
    n = np.maximum(sampled, 1.0)
    one, two, three = powers
    mirrored = n - one, n - 2 * one + two, n - 3 * one + 3 * two - three
    left = np.clip(1 - n / np.maximum(rows, 1.0), 0.0, 1.0)
    high = _upper(powers, n, left, alpha / 2)
    low = 1 - _upper(mirrored, n, left, alpha / 2)
    return np.where(sampled > 0, low, 0.0), np.where(sampled > 0, high, 1.0)


def _upper(
    powers: tuple[Numbers, Numbers, Numbers], n: Numbers, left: Numbers, alpha: float
) -> Numbers:
    one, two, three = ((power + 1) / (n + 1) for power in powers)
    variance = np.maximum(two - one**2, 0.0) / (n + 2)
    deviation = np.sqrt(np.maximum(variance, 1e-24))
    third = 2 * (three - 3 * one * two + 2 * one**3) / ((n + 2) * (n + 3))
    skew = np.clip(third / deviation**3, -2.5, 2.5)
    own = powers[0] / n
    quantile = _gamma_quantile(NormalDist().inv_cdf(1 - alpha), skew)
    return np.minimum(own + left * (one - own) + np.sqrt(left) * deviation * quantile, 1.0)


def _gamma_quantile(z: float, skew: Numbers) -> Numbers:
    """The quantile of a gamma distribution with mean 0, deviation 1 and some skewness, where that
    of the normal distribution is ``z`` (Wilson and Hilferty)."""
    skew = np.where(np.abs(skew) < 1e-4, 1e-4, skew)
    root: Numbers = np.maximum(1 - skew**2 / 36 + skew * z / 6, 0.0)
    return 2 / skew * (root**3 - 1)


def size_of_share(share: Numbers, rows: Places, half: Numbers, alpha: float) -> Places:
    """The rows to sample so that the bounds of a number with this share are at most 2 * ``half``
    apart."""

    def is_enough(n: Places) -> Any:
        least, most = shares(np.rint(share * n).astype(np.int64), n, rows, alpha)
        return most - least <= 2 * half

    own = rows.astype(np.float64)
    z = NormalDist().inv_cdf(1 - alpha / 2)
    variance = (z * np.maximum(own, 1) / half) ** 2 * share * (1 - share)
    about = variance / (1 + variance / np.maximum(own, 1)) + 0.5 * own / half
    size = rows.copy()
    for part in _PARTS[::-1]:
        n = np.clip(np.ceil(part * about).astype(np.int64), 1, np.maximum(rows, 1))
        enough = is_enough(n)
        size = np.where(enough, np.minimum(n, size), size)
        if not enough.any():
            break
    return size
