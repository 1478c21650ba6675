"""Evaluates the predicates of a block of which the first rows of each group that pass are wanted.

``row_number() OVER (PARTITION BY k ORDER BY d) = 1`` over ``WHERE f(x)`` needs the first row of
each ``k`` that passes. The rows come in the order of ``d``. As many rows of each ``k`` are asked
as it lacks, all ``k`` together, and so on, until it has enough. Where many rows have failed, up to
a quarter as many come at once, so that there are few rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from blendfusion.run.execution.equal_rows import Key, distinct_keys, ranks
from blendfusion.run.execution.expressions import Column, Rows

_MOST_KEYS = 1_000_000
"""The most groups that are remembered from chunk to chunk."""


class FirstOfEach:
    """The number of rows that each group lacks. ``at_once``: the number of answers that a model
    gives in the time of one."""

    def __init__(self, count: int, at_once: Callable[[], int]) -> None:
        self._count = count
        self._missing: dict[Key, int] = {}
        self._at_once = at_once

    def survivors(
        self,
        rows: Rows,
        columns: Callable[[Rows], Sequence[Column]],
        survivors: Callable[[Rows], Rows],
    ) -> Iterator[Rows]:
        """The ``survivors`` of predicates: at least the first ones of each group. ``columns``: the
        columns that tell groups apart."""
        found = distinct_keys(columns(rows), len(rows))
        if found is None:
            yield survivors(rows)
            return
        keys, places = found
        number = {key: i for i, key in enumerate(keys)}
        missing = np.array([self._missing.get(key, self._count) for key in keys], dtype=np.int64)
        seen = np.zeros(len(keys), dtype=np.int64)
        waiting = np.flatnonzero(missing[places] > 0) if len(keys) else np.arange(0)
        while len(waiting):
            groups = places[waiting]
            least = self._at_once() // len(np.unique(groups))
            size = np.maximum(np.maximum(missing, seen // 4), least)
            first = ranks(groups) < size[groups]
            passed = survivors(rows.take(waiting[first]))
            seen += np.bincount(groups[first], minlength=len(keys))
            again = distinct_keys(columns(passed), len(passed))
            assert again is not None
            for key, times in zip(again[0], np.bincount(again[1]).tolist(), strict=False):
                missing[number[key]] -= times
            yield passed
            waiting = waiting[~first]
            waiting = waiting[missing[places[waiting]] > 0]
        if len(self._missing) < _MOST_KEYS:
            self._missing.update(zip(keys, missing.tolist(), strict=True))
