"""Samples whose rows repeat values. A value is asked once, so its rows are right or wrong together
and say less than as many values would."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Groups = NDArray[np.intp]
"""The number of each row's value."""
_ERRORS = 2
"""So many errors, or right rows if those are fewer, weigh as much as the assumption that the rows
of a value are alike."""


def effective_size(right: NDArray[np.bool_], groups: Groups) -> float:
    """The number of rows with different values that would tell the share of ``right`` ones as
    precisely: the number of rows, if no value repeats.

    By the design effect of Kish (1965), with the correlation within values from an analysis of
    variance. Few errors say little of it, so it is moved towards 1.
    """
    _, of_row, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    rows, values = len(groups), len(sizes)
    if rows == values:  # also without rows
        return float(rows)
    alike = rows * rows / float((sizes.astype(float) ** 2).sum())
    if values == 1:
        return alike
    found = np.bincount(of_row, right, values)
    share = float(right.mean())
    within = float((found * (sizes - found) / sizes).sum()) / (rows - values)
    between = float((sizes * (found / sizes - share) ** 2).sum()) / (values - 1)
    usual = (rows - rows / alike) / (values - 1)
    total = between + (usual - 1) * within
    correlation = min(1.0, max(0.0, (between - within) / total)) if total else 1.0
    errors = min(share, 1 - share) * alike
    correlation = (errors * correlation + _ERRORS) / (errors + _ERRORS)
    return rows / (1 + (rows / alike - 1) * correlation)


def mean_error(values: NDArray[np.float64], groups: Groups) -> tuple[float, int]:
    """(the standard error of the mean of ``values``, its degrees of freedom), by the totals of each
    group: Cochran (1977), 9A."""
    _, of_row, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    count = len(sizes)
    if count < 2:
        return 0.0, 0
    beyond = np.bincount(of_row, values, count) - values.mean() * sizes
    return float(np.sqrt(count / (count - 1) * (beyond**2).sum())) / len(values), count - 1
