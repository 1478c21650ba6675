"""Reads the partitions of a plan together, and passes on their batches in turn.

DataFusion's operators may wait in one partition until they have begun in all of them, as a hash
join does before it filters its other side: whoever reads one partition to its first batch before
the next would wait without end.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa
from datafusion.record_batch import RecordBatch, RecordBatchStream

from blendfusion.datafusion.interruptible import Loop, Pump

Keep: TypeAlias = Callable[[Iterable[pa.Table]], pa.Table]
"""Stores the rows of tables, in memory or in a file."""

_SILENT_SECONDS = 0.1
"""How long the partition whose turn it is may be silent before the others read on. It may wait for
one of them."""
_MOST_READY = 16
"""The most batches of a partition that are held outside of ``Keep``."""


def in_turn(
    streams: Sequence[RecordBatchStream], keep: Keep, *, whole: bool = False
) -> Iterator[pa.RecordBatch]:
    """The batches of partitions, one of each in turn, or each ``whole`` before the next; in the
    same order each time.

    Each partition computes its next batch ahead. While the one whose turn it is gives nothing, the
    others read on, and their rows go to ``keep``. An error is raised in its turn, or if another
    partition may wait for the one that failed.
    """
    pump = Pump()
    loop = Loop(pump.enqueue)
    parts = [_Partition(stream, loop, keep) for stream in streams]
    try:
        left = deque(parts)
        while left:
            part = left.popleft()
            _wait_for(part, parts, pump)
            batch = part.take()
            if batch is not None:
                (left.appendleft if whole else left.append)(part)
                yield batch
    finally:
        for part in parts:
            part.cancel()


def _wait_for(part: _Partition, parts: Sequence[_Partition], pump: Pump) -> None:
    """Wait until ``part`` can be taken from. Raises the error of another one for which it may
    wait."""
    silent_at = time.monotonic() + _SILENT_SECONDS

    def has_come() -> bool:
        if part.is_ready():
            return True
        if time.monotonic() < silent_at:
            return False
        for other in parts:
            other.read_on()
        return any(other.error() is not None for other in parts)

    def cancel() -> None:
        for each in parts:
            each.cancel()

    pump.wait(has_come, cancel)
    if not part.is_ready():
        for other in parts:
            other.check()


class _Partition:
    """A stream that reads ahead."""

    def __init__(self, stream: RecordBatchStream, loop: Loop, keep: Keep) -> None:
        self._stream = stream
        self._loop = loop
        self._keep = keep
        self._kept: deque[pa.RecordBatch] = deque()
        self._ready: deque[pa.RecordBatch] = deque()
        """The batches behind ``_kept``."""
        self._next = self._begin()

    def _begin(self) -> asyncio.Future[RecordBatch]:
        return self._loop.begin(self._stream.rbs.__anext__)

    def is_ready(self) -> bool:
        """Whether ``take`` need not wait."""
        return bool(self._kept or self._ready) or self._next.done()

    def error(self) -> BaseException | None:
        """The error that ended it early, if one did."""
        found = self._next.exception() if self._next.done() else None
        return None if isinstance(found, StopAsyncIteration) else found

    def check(self) -> None:
        """Raises its error."""
        error = self.error()
        if error is not None:
            raise error

    def take(self) -> pa.RecordBatch | None:
        """The next batch of a partition that is ready; None at its end."""
        for held in (self._kept, self._ready):
            if held:
                return held.popleft()
        try:
            return self._fetch()
        except StopAsyncIteration:
            return None

    def read_on(self) -> None:
        """Hold what has come, and begin the next batch."""
        while self._next.done() and self._next.exception() is None:
            self._ready.append(self._fetch())
            if len(self._ready) >= _MOST_READY:
                self._kept.extend(self._keep([pa.Table.from_batches(self._ready)]).to_batches())
                self._ready.clear()

    def _fetch(self) -> pa.RecordBatch:
        batch = self._next.result().to_pyarrow()
        self._next = self._begin()
        return batch

    def cancel(self) -> None:
        self._next.cancel()
