"""Evaluates the predicates of a block of which the first rows that pass are wanted.

``row_number() OVER (PARTITION BY k ORDER BY d) = 1`` over ``WHERE f(x)`` needs the first row of
each ``k`` that passes; ``rank() … = 1`` those that equal it in ``d``, too; a ``LIMIT 3`` above,
three of these. The rows come in an order that is that of each ``k``, and of the limit. As many rows
of each ``k`` are asked as it lacks, all ``k`` together but no more than the limit lacks, and so on.
Where many rows have failed, up to a quarter as many of a group come at once, so that there are few
rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blendfusion.planner.ir.nodes import Expr, Field, Take
from blendfusion.run.execution.equal_rows import distinct_keys, keys_at
from blendfusion.run.execution.expressions import Rows
from blendfusion.run.execution.row_codes import Column, codes_of
from blendfusion.udfs.evaluate.row_keys import Key

Columns: TypeAlias = Callable[[Sequence[Expr], Rows], Sequence[Column]]
"""The values of expressions."""
Places: TypeAlias = NDArray[np.int64]
Masks: TypeAlias = NDArray[np.bool_]

_SHARE, _SHARE_OF_ALL = 4, 64
"""A round is at most one in so many of the rows asked before: of a group, of all groups."""
_MOST_KEYS = 1_000_000
"""The most groups that are remembered from chunk to chunk."""
_PART, _PART_OF_ALL = 1_024, 16
"""Where a limit counts the rows of all groups, a chunk is divided into parts of at least so many
rows, and of one in so many of the rows so far: what comes late is looked at late."""


class FirstRows:
    """The rows that are still wanted. ``at_once``: the number of answers that a model gives in the
    time of one."""

    def __init__(self, takes: Sequence[Take], at_once: Callable[[], int]) -> None:
        self._takes = takes
        self._seen: list[dict[Key, _GroupCounts]] = [{} for _ in takes]
        self._at_once = at_once
        self._rows = 0
        self.is_full = False
        """Whether no later row is wanted."""

    def survivors(
        self,
        rows: Rows,
        columns: Columns,
        survivors: Callable[[Rows, Field], Rows] | None,
    ) -> Iterator[Rows]:
        """The ``survivors`` of predicates, at least those that are wanted. They keep the column of
        row numbers that they are given. None: all rows pass."""
        start = 0
        while start < len(rows) and not self.is_full:
            size = len(rows)
            if not all(take.per for take in self._takes):
                size = max(_PART, _SHARE_OF_ALL * self._at_once(), self._rows // _PART_OF_ALL)
            part = rows if size >= len(rows) else rows.slice(start, size)
            yield from self._survivors_of_part(part, columns, survivors)
            self._rows += len(part)
            start += size

    def _survivors_of_part(
        self,
        rows: Rows,
        columns: Columns,
        survivors: Callable[[Rows, Field], Rows] | None,
    ) -> Iterator[Rows]:
        levels: list[_Level] = []
        for take, seen in zip(self._takes, self._seen, strict=True):
            level = _level(take, seen, rows, columns)
            if level is None:  # a column has no hash
                yield rows if survivors is None else survivors(*_with_numbers(rows))
                return
            levels.append(level)
        passes = np.full(len(rows), survivors is None)
        chosen = passes.copy()
        if survivors is None:
            yield rows.take(np.flatnonzero(_rows_to_ask(levels, passes)))
        else:
            own, number = _with_numbers(rows)
            while len(places := self._next(levels, passes, chosen)):
                chosen[places] = True
                passed = survivors(own.take(places), number)
                passes[passed.table.column(number.index).to_numpy()] = True
                yield passed
        self._remember(levels, passes, chosen)

    def _next(self, levels: Sequence[_Level], passes: Masks, chosen: Masks) -> Places:
        """The places of the rows to ask about next."""
        places = np.flatnonzero(_rows_to_ask(levels, passes) & ~chosen)
        for level in levels:
            if len(places):
                places = places[level.lacks(places, chosen, self._at_once())]
        return places

    def _remember(self, levels: Sequence[_Level], passes: Masks, chosen: Masks) -> None:
        wanted = _rows_to_ask(levels, passes)
        for level, seen in zip(levels, self._seen, strict=True):
            if len(seen) < _MOST_KEYS:
                seen.update(level.counts_of(chosen))
            whole = not level.take.per and len(wanted) and not wanted[-1]
            self.is_full = self.is_full or bool(whole and level.counted[0] >= level.take.count)


def _with_numbers(rows: Rows) -> tuple[Rows, Field]:
    """The rows with their numbers as a last column."""
    n, numbers = rows.table.num_columns, pa.array(np.arange(len(rows)))
    return Rows(rows.table.append_column(str(n), numbers), rows.known), Field(n)


def _rows_to_ask(levels: Sequence[_Level], passes: Masks) -> Masks:
    """The rows that may be wanted, as far as it is known which rows pass."""
    wanted = np.full(len(passes), True)
    counted = np.flatnonzero(passes)
    for level in levels:
        inside = level.inside(counted)
        wanted &= inside
        counted = counted[inside[counted]]
    return wanted


class _GroupCounts(NamedTuple):
    """The rows of a group so far."""

    questions: int = 0
    counted: int = 0
    """The rows that count, or combinations of values."""
    last: Key | None = None
    """The values of the order in the last row that counts."""


def _level(
    take: Take, seen: dict[Key, _GroupCounts], rows: Rows, columns: Columns
) -> _Level | None:
    """The rows of a chunk as ``take`` divides them; None for columns without a hash."""
    order = [_without_signed_zeros(c) for c in columns(take.order, rows)]
    per = columns(take.per, rows)
    groups = distinct_keys(
        [_without_signed_zeros(c) for c in per] if take.of_groups else per, len(rows)
    )
    equal, tied = (codes_of(part, len(rows)) for part in (order, order[: take.ties]))
    if groups is None or equal is None or tied is None:
        return None
    earlier = [seen.get(key, _GroupCounts()) for key in groups[0]]
    return _Level(take, groups, order, equal, tied, earlier)


def _without_signed_zeros(column: Column) -> Column:
    return pc.add(column, 0.0) if pa.types.is_floating(column.type) else column


class _Level:
    """The rows of a chunk as a take divides them into groups. Each row has the number of its group,
    and codes of its values of the order, and of those that tie; rows that are equal in these are
    neighbours in their group, so that those that equal an earlier chunk's last one come first."""

    def __init__(
        self,
        take: Take,
        groups: tuple[list[Key], Places],
        order: Sequence[Column],
        equal: Places,
        tied: Places,
        earlier: Sequence[_GroupCounts],
    ) -> None:
        self.take, self._earlier = take, earlier
        self._keys, self._group = groups
        self._order, self._equal, self._tied = order, equal, tied
        self._count_before = np.array([e.questions for e in earlier], dtype=np.int64)
        self._before = np.array([e.counted for e in earlier], dtype=np.int64)
        self._last_before, self._closing = self._codes_before()
        self.counted, self._last = self._before, self._last_before
        """The rows of each group that count so far, or combinations of values; the code of the
        values of the last one, -1 if the chunk has none."""
        self._last_row = np.full(len(earlier), -1, dtype=np.int64)

    def _codes_before(self) -> tuple[Places, Places]:
        """The codes of each group's last values of earlier chunks, and of those that tie with them;
        -1: the chunk has none."""
        last, closing = np.full((2, len(self._earlier)), -1, dtype=np.int64)
        known = [i for i, e in enumerate(self._earlier) if e.last is not None]
        first = np.zeros(len(self._earlier), dtype=np.int64)
        first[self._group[::-1]] = np.arange(len(self._group))[::-1]
        ties = self.take.ties
        for i, key in zip(known, keys_at(self._order, first[known]), strict=True):
            before = self._earlier[i].last
            assert before is not None
            if key == before:
                last[i] = self._equal[first[i]]
            if key[:ties] == before[:ties]:
                closing[i] = self._tied[first[i]]
        return last, closing

    def inside(self, counted: Places) -> Masks:
        """The rows that are not behind the last one of their group, if the rows at the places
        ``counted`` count."""
        count = self.take.count
        end = np.where(self._before >= count, -1, len(self._group))
        closing, times, last = (a.copy() for a in (self._closing, self._before, self._last_before))
        places, _, number, new = self._counts(counted, self._last_before)
        group = self._group[places]
        number = number + self._before[group]
        full = new & (number == count)
        end[group[full]], closing[group[full]] = places[full], self._tied[places[full]]
        inside = np.arange(len(self._group)) <= end[self._group]
        if self.take.ties:
            full_groups = end < len(self._group)
            inside |= full_groups[self._group] & (self._tied == closing[self._group])
        kept = inside[places]
        times[group[kept]], last[group[kept]] = number[kept], self._equal[places[kept]]
        self._last_row[group[kept]] = places[kept]
        self.counted, self._last = np.minimum(times, count), last
        return inside

    def lacks(self, places: Places, chosen: Masks, at_once: int) -> Masks:
        """Whether rows are among those that their groups lack; all of those that only tie."""
        missing = self.take.count - self.counted
        size = self._count_now(chosen) // (_SHARE if self.take.per else _SHARE_OF_ALL)
        size = np.maximum(size, at_once // np.count_nonzero(np.bincount(self._group[places])))
        ordered, place, number, _ = self._counts(places, self._last)
        group = self._group[ordered]
        lacking = np.where(missing > 0, missing, len(self._group))
        wanted = (number <= lacking[group]) | (place <= size[group])
        found = np.full(len(self._group), False)
        found[ordered[wanted]] = True
        return found[places]

    def _counts(self, places: Places, last: Places) -> tuple[Places, Places, Places, Masks]:
        """(the rows at some places by group, how many rows of its group there are up to each, and
        how many combinations of values behind the ``last`` ones if these count, whether it is the
        first of these)"""
        ordered = places[np.argsort(self._group[places], kind="stable")]
        group = self._group[ordered]
        starts = _starts(group)
        number = np.arange(1, len(ordered) + 1)
        place = number - np.maximum.accumulate(np.where(starts, number - 1, 0))
        if not self.take.dense:
            return ordered, place, place, np.full(len(ordered), True)
        equal = self._equal[ordered]
        new = starts | (equal != np.roll(equal, 1))
        new &= ~(starts & (equal == last[group]))
        return ordered, place, _sums(new, starts), new

    def _count_now(self, chosen: Masks) -> Places:
        return self._count_before + np.bincount(self._group[chosen], minlength=len(self._keys))

    def counts_of(self, chosen: Masks) -> dict[Key, _GroupCounts]:
        """The rows of each group so far, by its key."""
        last: list[Key | None] = [e.last for e in self._earlier]
        new = np.flatnonzero(self._last_row >= 0)
        for i, key in zip(new, keys_at(self._order, self._last_row[new]), strict=True):
            last[i] = key
        counts = self._count_now(chosen).tolist(), self.counted.tolist()
        lines = zip(self._keys, *counts, last, strict=True)
        return {key: _GroupCounts(*line) for key, *line in lines}


def _starts(group: Places) -> Masks:
    """The places where a group starts."""
    starts = np.full(len(group), True)
    starts[1:] = group[1:] != group[:-1]
    return starts


def _sums(which: Masks, starts: Masks) -> Places:
    """For each place, the number of true ones up to it since the last start."""
    sums = np.cumsum(which)
    return sums - np.maximum.accumulate(np.where(starts, sums - which, 0))
