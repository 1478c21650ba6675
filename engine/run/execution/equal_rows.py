"""Evaluates the predicates of a block of whose equal rows any one is as good as all.

``SELECT DISTINCT k … WHERE f(x)`` and ``k IN (SELECT k … WHERE f(x))`` need one row of each ``k``
that passes. Rows about which nothing is left to ask come first. Then one row of each ``k`` is
asked, then two more, and so on, until one passes: there are few rounds, and hardly more questions
than one by one. Of the rows of a ``k`` those come first whose values are the most frequent, since
one answer then decides several ``k``. The order does not depend on that of the rows of a chunk, so
that a second run asks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.run.execution.expressions import Rows
from blendfusion.run.execution.row_codes import Column, codes_of
from blendfusion.udfs.evaluate.row_keys import Key, row_keys

_ORDERED = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)
"""Types of columns by whose values rows are sorted."""
_MOST_KEYS = 1_000_000
"""The most keys that are remembered from chunk to chunk."""


class EqualRows:
    """The keys that have passed so far. ``read``: the columns that questions read."""

    def __init__(self, read: Sequence[int] = ()) -> None:
        self._passed: set[Key] = set()
        self._read = read

    @property
    def distinct(self) -> int:
        """The number of keys that have passed, at least."""
        return len(self._passed)

    def survivors(
        self,
        rows: Rows,
        columns: Callable[[Rows], Sequence[Column]],
        survivors: Callable[[Rows], Rows],
        known: Callable[[Rows], np.ndarray],
    ) -> Iterator[Rows]:
        """The ``survivors`` of predicates, at least one row of each key that has one. ``columns``:
        the columns of a key; ``known``: the rows about which nothing is left to ask."""
        rows = _order_rows(rows, self._read)
        found = distinct_keys(columns(rows), len(rows))
        if found is None:
            yield survivors(rows)
            return
        keys, places = found
        number = {key: i for i, key in enumerate(keys)}
        done = np.array([key in self._passed for key in keys], dtype=bool)
        waiting = np.flatnonzero(~done[places]) if len(keys) else np.arange(0)
        size = 1
        first = known(rows)[waiting]
        if not first.any():
            first = ranks(places[waiting]) < size
        while len(waiting):
            passed = survivors(rows.take(waiting[first]))
            again = distinct_keys(columns(passed), len(passed))
            assert again is not None
            if len(self._passed) < _MOST_KEYS:
                self._passed.update(again[0])
            done[[number[key] for key in again[0]]] = True
            yield passed
            waiting = waiting[~first]
            waiting = waiting[~done[places[waiting]]]
            first = ranks(places[waiting]) < size
            size *= 2


def _order_rows(rows: Rows, read: Sequence[int]) -> Rows:
    """The rows in an order of their values: those in the columns ``read`` first, by frequency."""
    if len(rows) < 2:
        return rows
    of_questions = [rows.table.column(i) for i in read]
    others = [c for i, c in enumerate(rows.table.columns) if i not in read]
    columns = [c for c in (*of_questions, *others) if _has_order(c.type)]
    found = distinct_keys(of_questions, len(rows))
    if found is not None and of_questions:
        times = np.bincount(found[1])
        columns.insert(0, pa.array(-times[found[1]]))
    if not columns:
        return rows
    names = [str(i) for i in range(len(columns))]
    order = pc.sort_indices(pa.table(columns, names), [(name, "ascending") for name in names])
    return rows.take(order.to_numpy(zero_copy_only=False))


def _has_order(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _ORDERED)


def ranks(places: np.ndarray) -> np.ndarray:
    """The number of each row, from 0, among the rows with its key."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = first_places(ordered)
    lengths = np.diff(starts, append=len(ordered))
    ranks = np.empty(len(places), dtype=np.int64)
    ranks[order] = np.arange(len(places)) - np.repeat(starts, lengths)
    return ranks


def first_places(ordered: np.ndarray) -> np.ndarray:
    """The place of the first of each run of equal numbers."""
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return np.flatnonzero(new)


def bounds_of(lengths: np.ndarray) -> np.ndarray:
    """The first place of each of some ranges that follow one another, and the end of the last."""
    bounds = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


def distinct_keys(columns: Sequence[Column], n: int) -> tuple[list[Key], np.ndarray] | None:
    """(the distinct keys, the place of each row's key among them); None for columns of a type that
    has no hash. Of floating-point numbers, keys have the text: 0.0 is another one than -0.0."""
    columns = [pc.cast(c, pa.string()) if pa.types.is_floating(c.type) else c for c in columns]
    codes = codes_of(columns, n)
    if codes is None:
        return None
    first, places = np.unique(codes, return_index=True, return_inverse=True)[1:]
    return keys_at(columns, first), places.reshape(-1)


def keys_at(columns: Sequence[Column], places: np.ndarray) -> list[Key]:
    """The keys of some rows."""
    at = pa.array(places, pa.int64())
    return row_keys([column.take(at) for column in columns], len(places))
