"""Stages that run in turn, some rows each, until what stands above them has enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

import pyarrow as pa

from blendfusion.pipeline import Counts
from blendfusion.planner.limited_stages import Limited


class Begin(Protocol):
    """Begins a stage that takes ``most()`` rows at a time."""

    def __call__(self, *, most: Callable[[], int]) -> Generator[pa.Table, None, None]: ...


class Turn:
    """One of them. ``keep`` stores what it gives. ``late``: what it reads may come with the rows of others, all at once."""

    def __init__(
        self, begin: Begin, keep: Callable[[pa.Table], None], counts: Counts, *, late: bool
    ) -> None:
        self._begin, self._keep, self._counts, self._late = begin, keep, counts, late
        self._tables = begin(most=lambda: self.most)
        self.most = 1
        """How many rows it takes at a time."""
        self.rows: int | None = None
        """That it gave; None: nothing is stored yet."""
        self.over = False

    @property
    def taken(self) -> int:
        """Rows of its source."""
        return self._counts.rows_in

    def take(self) -> bool:
        """Store what it gives next; whether that is rows."""
        table = next(self._tables, None)
        if table is None:
            self.over = True
            return False
        if len(table) or self.rows is None:
            self._keep(table)
        self.rows = (self.rows or 0) + len(table)
        return len(table) > 0

    def again(self) -> None:
        """Others gave rows: one that had nothing to read begins anew."""
        if self._late and self.over and not self.taken:
            self._tables, self.over = self._begin(most=lambda: self.most), False

    def close(self) -> None:
        """Nothing more is wanted of it."""
        self._tables.close()


def enough(turns: Sequence[Turn], look: Callable[[], int], limited: Limited) -> None:
    """Let the stages take rows until a ``look`` at what is above them finds those of the limit; or to their end.

    At best every row of one side goes with every one of the other: so many come first. Then the next turn is that of the stage
    that has taken the fewest, and it takes as many as the rows found so far let expect. What is above is looked at whenever
    the stages have a quarter more rows: often enough, and at little cost in all.
    """
    wanted = limited.offset + limited.count
    for turn in turns:
        turn.most = max(1, math.ceil(wanted ** (1 / len(turns))))
        turn.take()
    looked, there = 0, 0
    while True:
        going = [turn for turn in turns if not turn.over]
        rows = sum(turn.rows or 0 for turn in turns)
        if not going or 4 * rows >= 5 * looked:
            looked, there = rows, look()
            if not going or there >= limited.count:
                return
        turn = min(going, key=lambda turn: turn.taken)
        turn.most = _most(turn, looked, wanted, limited.offset + there if there else 0)
        if turn.take():
            for turn in turns:
                turn.again()


def _most(turn: Turn, looked: int, wanted: int, there: int) -> int:
    """How many rows to take so that, of ``there`` rows above, ``wanted`` may become; no fewer than what the next look
    needs."""
    if not there:
        return max(1, turn.taken)
    return max(1, math.ceil(looked / 4), math.ceil(turn.taken * (wanted / there - 1)))
