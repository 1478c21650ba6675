"""Stages that run in turn, some rows each, until what stands above them has enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

import pyarrow as pa

from blendfusion.execution.pipeline import Counts
from blendfusion.planner.stages.interleave import Limited


class Begin(Protocol):
    """Begins a stage that takes ``most()`` rows at a time."""

    def __call__(self, *, most: Callable[[], int]) -> Generator[pa.Table, None, None]: ...


class Turn:
    """One of them. ``keep`` puts a table aside, ``store`` is given all that it gave. ``late``: what it reads may come with
    the rows of others, all at once; ``anew``: it reads more with their rows.

    What is stored only ever gets more rows: what begins anew stays aside until it has more than are stored. So with the last
    rows of others everything has begun anew once more, and what it then gives is all there is.
    """

    def __init__(
        self,
        begin: Begin,
        keep: Callable[[pa.Table], pa.Table],
        store: Callable[[pa.Table], None],
        counts: Counts,
        *,
        late: bool,
        anew: bool,
    ) -> None:
        self._begin, self._counts = begin, counts
        self._keep, self._store = keep, store
        self._late, self._anew = late, anew
        self._most = 1
        self._tables = self._begun()
        self._pieces: list[pa.Table] = []
        self.rows: int | None = None
        """That are stored; None: there was nothing to store yet."""
        self.taken = 0
        """Rows of its source, at most so far."""
        self.over = False

    def take(self, more: int) -> bool:
        """Store what it gives for so many more rows of its source; whether there are more rows stored."""
        self._most = more + self.taken - self._counts.rows_in
        table = next(self._tables, None)
        if table is None:
            self.over = True
            return False
        self.taken = max(self.taken, self._counts.rows_in)
        self._pieces.append(self._keep(table))
        before, rows = self.rows, sum(map(len, self._pieces))
        if before is None or rows > before:
            self._store(pa.concat_tables(self._pieces))
            self.rows = rows
        return rows > (before or 0)

    def again(self) -> None:
        """Others gave rows: one that had nothing to read begins anew, or one that has more to read."""
        if self._anew or (self._late and self.over and not self.taken):
            self._tables.close()
            self._pieces = []
            self._counts.restart()
            self._tables, self.over = self._begun(), False

    def _begun(self) -> Generator[pa.Table, None, None]:
        return self._begin(most=lambda: self._most)

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
        turn.take(max(1, math.ceil(wanted ** (1 / len(turns)))))
    looked, there = 0, 0
    while True:
        going = [turn for turn in turns if not turn.over]
        rows = sum(turn.rows or 0 for turn in turns)
        if not going or 4 * rows >= 5 * looked:
            looked, there = rows, look()
            if not going or there >= limited.count:
                return
        turn = min(going, key=lambda turn: turn.taken)
        more = _more(turn, looked, wanted, limited.offset + there if there else 0)
        if turn.take(more):
            for other in turns:
                if other is not turn:
                    other.again()


def _more(turn: Turn, looked: int, wanted: int, there: int) -> int:
    """How many rows to take so that, of ``there`` rows above, ``wanted`` may become; no fewer than what the next look
    needs."""
    if not there:
        return max(1, turn.taken)
    return max(1, math.ceil(looked / 4), math.ceil(turn.taken * (wanted / there - 1)))
