"""The whole order of values by comparisons: nearly as few as possible, in few rounds.

A sorted sample divides the values into intervals, each value by a binary search. All searches go
on side by side, and so do the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blendfusion.udfs.services.columns.closure import Pair
from blendfusion.udfs.services.columns.comparisons import Comparisons

_SMALLEST = 3
"""Values whose first one or two are their sample."""


@dataclass(slots=True)
class _Search:
    """The place of a value in a sorted sample: not before ``low``, not behind ``high``."""

    place: int
    sample: list[int]
    low: int
    high: int

    @property
    def middle(self) -> int:
        return (self.low + self.high) // 2


def sample_sorted(places: Sequence[int], comparisons: Comparisons) -> list[int]:
    """``places`` in their order."""
    shuffled = np.random.default_rng(0).permutation(len(places)).tolist()
    return _sorted_all([[places[i] for i in shuffled]], comparisons)[0]


def _sorted_all(groups: Sequence[Sequence[int]], comparisons: Comparisons) -> list[list[int]]:
    """Each group in its order, all of them side by side."""
    if not any(len(group) > 1 for group in groups):
        return [list(group) for group in groups]
    sizes = [_sample_size(len(group)) for group in groups]
    samples = _sorted_all(
        [group[:size] for group, size in zip(groups, sizes, strict=True)], comparisons
    )
    rest = [group[size:] for group, size in zip(groups, sizes, strict=True)]
    intervals = _divide(samples, rest, comparisons)
    flat = iter(_sorted_all([one for own in intervals for one in own], comparisons))
    result = []
    for sample, own in zip(samples, intervals, strict=True):
        merged = next(flat)
        for place in sample:
            merged = [*merged, place, *next(flat)]
        assert len(own) == len(sample) + 1
        result.append(merged)
    return result


def _sample_size(n: int) -> int:
    """About √n: 2^m - 1 values, so that each binary search takes m comparisons."""
    if n <= 1:
        return n
    return max(1, int(2 ** round(np.log2(n**0.5 + 1))) - 1) if n > _SMALLEST else 1


def _divide(
    samples: Sequence[list[int]], rest: Sequence[Sequence[int]], comparisons: Comparisons
) -> list[list[list[int]]]:
    """For each sample, the values before its first, between its first and second, and so on."""
    intervals: list[list[list[int]]] = [[[] for _ in range(len(own) + 1)] for own in samples]
    searches = [
        (number, _Search(place, samples[number], 0, len(samples[number])))
        for number, own in enumerate(rest)
        for place in own
    ]
    while searches:
        pairs: list[Pair] = [(one.place, one.sample[one.middle]) for _, one in searches]
        still = []
        for (number, one), won in zip(searches, comparisons.wins(pairs), strict=True):
            if won:
                one.high = one.middle
            else:
                one.low = one.middle + 1
            if one.low < one.high:
                still.append((number, one))
            else:
                intervals[number][one.low].append(one.place)
        searches = still
    return intervals
