"""Evaluates the predicates of a block of whose equal rows any one is as good as all.

``SELECT DISTINCT k … WHERE f(x)`` and ``k IN (SELECT k … WHERE f(x))`` need one row of each ``k``
that passes. So one row of each is asked first, then two more, and so on, until one passes: there
are few rounds, and hardly more questions than one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.execution.expressions import Column, Rows

Key: TypeAlias = tuple[object, ...]

_MOST_KEYS = 1_000_000
"""The most keys that are remembered from chunk to chunk."""


class EqualRows:
    """The keys that have passed so far."""

    def __init__(self) -> None:
        self._passed: set[Key] = set()

    def survivors(
        self,
        rows: Rows,
        columns: Callable[[Rows], Sequence[Column]],
        survivors: Callable[[Rows], Rows],
    ) -> Iterator[Rows]:
        """The ``survivors`` of predicates, at least one row of each key that has one. ``columns``:
        the columns of a key."""
        found = _keys(columns(rows), len(rows))
        if found is None:
            yield survivors(rows)
            return
        keys, places = found
        number = {key: i for i, key in enumerate(keys)}
        done = np.array([key in self._passed for key in keys], dtype=bool)
        waiting = np.flatnonzero(~done[places]) if len(keys) else np.arange(0)
        size = 1
        while len(waiting):
            first = _ranks(places[waiting]) < size
            passed = survivors(rows.take(waiting[first]))
            again = _keys(columns(passed), len(passed))
            assert again is not None
            if len(self._passed) < _MOST_KEYS:
                self._passed.update(again[0])
            done[[number[key] for key in again[0]]] = True
            yield passed
            waiting = waiting[~first]
            waiting = waiting[~done[places[waiting]]]
            size *= 2


def _ranks(places: np.ndarray) -> np.ndarray:
    """For each row its number, from 0, among those of the same key."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, len(ordered)])
    ranks = np.empty(len(places), dtype=np.int64)
    ranks[order] = np.arange(len(places)) - np.repeat(starts, lengths)
    return ranks


def _keys(columns: Sequence[Column], n: int) -> tuple[list[Key], np.ndarray] | None:
    """(the distinct keys, the place of each row's key among them); None for columns of a type that
    has no hash."""
    keys: list[Key] = [()]
    places = np.zeros(n, dtype=np.int64)
    for column in columns:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        try:
            encoded = pc.dictionary_encode(whole, null_encoding="encode")
        except pa.ArrowNotImplementedError:
            return None
        values = encoded.dictionary.to_pylist()
        mixed = places * max(len(values), 1) + encoded.indices.to_numpy(zero_copy_only=False)
        numbers, places = np.unique(mixed, return_inverse=True)
        keys = [(*keys[m // len(values)], values[m % len(values)]) for m in numbers.tolist()]
    return (keys if n else []), places
