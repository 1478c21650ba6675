"""Runs stages in turn, some rows each, until the plan above them has enough rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

import pyarrow as pa

from blendfusion.planner.stages.interleave import LimitedStages
from blendfusion.run.execution.pipeline import Counts


class Begin(Protocol):
    """Starts a stage that takes ``most()`` rows at a time."""

    def __call__(self, *, most: Callable[[], int]) -> Generator[pa.Table, None, None]: ...


class IncrementalStage:
    """A stage that is run incrementally. ``keep`` spills one output table; ``store`` registers all
    output so far. ``late``: starts only after an upstream stage has rows; ``restarts``: runs again
    when an upstream stage grows.

    Stored rows only grow: a restarted stage is set aside until it has more rows than are stored.
    With the last rows of its inputs every stage has restarted once more, so its output is then
    complete.
    """

    def __init__(
        self,
        begin: Begin,
        keep: Callable[[pa.Table], pa.Table],
        store: Callable[[pa.Table], None],
        counts: Counts,
        *,
        late: bool,
        restarts: bool,
    ) -> None:
        self._begin, self._counts = begin, counts
        self._keep, self._store = keep, store
        self._late, self._restarts = late, restarts
        self._most = 1
        self._tables = self._start()
        self._pieces: list[pa.Table] = []
        self.rows: int | None = None
        """The number of stored rows; None before anything is stored."""
        self.taken = 0
        """An upper bound of the rows taken from its source."""
        self.over = False

    def take(self, more: int) -> bool:
        """Store the output for ``more`` rows of its source; returns whether the stored rows
        grew."""
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
        """Inputs have grown: start a stage that waited for them, and restart one that has more to
        read."""
        if self._restarts or (self._late and self.over and not self.taken):
            self._tables.close()
            self._pieces = []
            self._counts.restart()
            self._tables, self.over = self._start(), False

    def _start(self) -> Generator[pa.Table, None, None]:
        return self._begin(most=lambda: self._most)

    def close(self) -> None:
        """Release the stage; no more rows are needed."""
        self._tables.close()


def run_interleaved(
    turns: Sequence[IncrementalStage], look: Callable[[], int], limited: LimitedStages
) -> None:
    """Let the stages take rows until a ``look`` at the plan above finds those of the limit, or to
    their end.

    At best every row of one side matches every one of the other: so many rows come first. Each
    later turn goes to the stage with the fewest rows, and the rows found so far determine its size.
    The plan above runs whenever the stages have grown by a quarter: often enough, at little total
    cost.
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


def _more(turn: IncrementalStage, looked: int, wanted: int, there: int) -> int:
    """The rows to take so that ``wanted`` rows may result, given ``there`` rows above; at least as
    many as the next look needs."""
    if not there:
        return max(1, turn.taken)
    return max(1, math.ceil(looked / 4), math.ceil(turn.taken * (wanted / there - 1)))
