"""Runs DataFusion on its own threads while the caller's thread waits and stays interruptible.

DataFusion itself looks for a signal once a second, and only where its plan gives way. Here a
signal ends the waiting at once, and cancels what DataFusion computes.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, cast

import pyarrow as pa
from datafusion.record_batch import RecordBatchStream

from blendfusion.errors import BlendFusionError
from blendfusion.models.protocol.interrupts import (
    check_interrupt,
    hear_interrupt,
    hears_interrupts,
    raise_in,
)
from blendfusion.models.protocol.run_aside import PATIENCE_SECONDS

T = TypeVar("T")
Step = Callable[[], object]

_PAUSE_SECONDS = 0.1
"""How long a job waits for a reader who is not waiting himself."""
_QUICK_SECONDS = 0.002
"""A batch that comes sooner is followed by some that are fetched directly, ``_DIRECT`` at most."""
_DIRECT = 16
LONG_QUERY = 1_000
"""Characters of a query that may take long to be planned; a thread for it costs a millisecond or
two."""
_LATELY_SECONDS = 60.0
_LEFT_SECONDS = 0.05
"""How long ago a thread must have been in our code for it to be back in DataFusion's."""


class Pump:
    """Fetches the batches of one stream, or makes one other call into DataFusion.

    Requests of DataFusion's functions go through ``serve`` to the waiting thread, so that a model
    is called where a signal reaches it, and by one thread at a time.

    Python handles signals on its main thread alone; on any other, everything is done directly,
    unless it is ``interruptible`` from outside."""

    def __init__(self) -> None:
        self._owner = threading.current_thread()
        self._steps: deque[Step] = deque()
        self._news: SimpleQueue[None] = SimpleQueue()
        self._lock = threading.Lock()
        self._serving = False
        self._waiting = False
        self._interrupted = False
        self._served = 0
        """Threads of DataFusion's that are in ``serve``."""
        self._served_at = 0.0
        """When one last was: a reading of ``time.monotonic``."""

    def batches(
        self, begin: Callable[[], RecordBatchStream], *, asks: bool, query: str = ""
    ) -> Iterator[pa.RecordBatch]:
        """The batches of the stream that ``begin`` begins, each fetched when it is taken.

        ``asks``: the plan may ask something. One that does not and is quick hands most of its
        batches over directly, at a fourth of the cost; should it be slow of a sudden, DataFusion
        itself looks for a signal once a second."""
        if not hears_interrupts(self._owner):
            yield from (batch.to_pyarrow() for batch in begin())
            return
        loop = Loop(self.enqueue)
        with self._open():
            stream = self.call(begin) if len(query) > LONG_QUERY else self.begin(begin)
            while True:
                start = time.monotonic()
                batch = loop.begin(stream.rbs.__anext__)
                self.wait(batch.done, batch.cancel)
                try:
                    fetched = batch.result()
                except StopAsyncIteration:
                    return
                is_quick = not asks and time.monotonic() - start < _QUICK_SECONDS
                yield fetched.to_pyarrow()
                if is_quick and (yield from _quick(stream)):
                    return

    def call(self, work: Callable[[], T]) -> T:
        """The result of ``work``; its exceptions are raised. After a signal, the work goes on
        without effect until it asks a question, ends, or DataFusion checks for signals, which it
        does once a second."""
        if not hears_interrupts(self._owner):
            return work()
        job = _Job(work)
        job.result.add_done_callback(lambda _: self._news.put(None))
        with self._open():
            thread = threading.Thread(target=job.settle, name="blendfusion-call", daemon=True)
            thread.start()
            self.wait(job.result.done, lambda: _end(thread))
        return job.result.result()

    def begin(self, begin: Callable[[], T]) -> T:
        """The result of ``begin``, which is short. After an interruption it runs as by ``call``,
        since cancelled work may still occupy DataFusion's threads."""
        return self.call(begin) if lately_interrupted() else begin()

    def serve(self, work: Callable[[], T]) -> T:
        """The result of ``work``, done by the thread that waits for DataFusion; here if none does.

        Raises BlendFusionError once that thread was interrupted.
        """
        with self._lock:
            self._served += 1
        try:
            return self._await_answer(work)
        finally:
            with self._lock:
                self._served -= 1
                self._served_at = time.monotonic()

    def _await_answer(self, work: Callable[[], T]) -> T:
        job = _Job(work)
        with self._lock:
            self._check()
            served = self._serving and threading.current_thread() is not self._owner
            if served:
                self.enqueue(job)
        while served:
            finished, _ = wait([job.result], _PAUSE_SECONDS)
            if finished:
                if not job.result.cancelled():
                    return job.result.result()
                served = False
            elif not self._waiting:  # who reads the stream has paused: it may never come back
                served = not job.result.cancel()
        self._check()
        return work()

    def _check(self) -> None:
        if self._interrupted:
            raise BlendFusionError("the query was interrupted")

    def enqueue(self, step: Step) -> None:
        self._steps.append(step)
        self._news.put(None)

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Accepts jobs inside the block; jobs that are left at its end go back to their senders."""
        before, self._serving = self._serving, True
        try:
            yield
        finally:
            with self._lock:
                self._serving = before
            if not before:
                self._clear()

    def wait(self, done: Callable[[], bool], stop: Callable[[], object]) -> None:
        """Do what comes in until ``done``. On a signal, ``stop``."""
        self._waiting = True
        try:
            while not done():
                check_interrupt()
                if self._steps:
                    self._steps[0]()  # still there if a signal comes in between
                    self._steps.popleft()
                else:
                    # In slices: a wait without an end cannot be interrupted on every platform.
                    with suppress(Empty):
                        self._news.get(timeout=0.2)
        except BaseException:
            hear_interrupt()
            _interruption.at = time.monotonic()
            with self._lock:
                self._interrupted = True
            self._clear()
            stop()
            self._clear()
            self._see_off()
            raise
        finally:
            self._waiting = False

    def _clear(self) -> None:
        """Cancel the jobs that wait; take the other steps."""
        while self._steps:
            step = self._steps.popleft()
            if isinstance(step, _Job):
                step.result.cancel()
            else:
                step()

    def _see_off(self) -> None:
        """Wait until DataFusion's threads have left Python: one that is there while the interpreter
        shuts down would take the process down."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            if not self._served and time.monotonic() - self._served_at > _LEFT_SECONDS:
                return
            time.sleep(0.005)


def _quick(stream: RecordBatchStream) -> Generator[pa.RecordBatch, None, bool]:
    """The next batches, fetched directly; few of them, and no more after one that took its time.
    True at the end of the stream."""
    for _ in range(_DIRECT):
        start = time.monotonic()
        batch = next(stream, None)
        if batch is None:
            return True
        is_quick = time.monotonic() - start < _QUICK_SECONDS
        yield batch.to_pyarrow()
        if not is_quick:
            break
    return False


class _Job(Generic[T]):
    """Work to be done by one thread for another, and the future of what comes of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.result: Future[T] = Future()
        self._work = work

    def settle(self) -> BaseException | None:
        """Run the job unless it was cancelled. Its exception is raised by the waiting caller, and
        returned."""
        if not self.result.set_running_or_notify_cancel():
            return None
        try:
            self.result.set_result(self._work())
        except BaseException as error:
            self.result.set_exception(error)
            return error
        return None

    def __call__(self) -> None:
        error = self.settle()
        if error is not None and not isinstance(error, Exception):  # a signal of this thread
            raise error


class Loop:
    """As much of an event loop as DataFusion's awaitables need, without a thread and without files:
    callbacks go to ``enqueue``, and are run by whoever takes them from there."""

    def __init__(self, enqueue: Callable[[Step], None]) -> None:
        self._enqueue = enqueue

    def begin(self, work: Callable[[], asyncio.Future[T]]) -> asyncio.Future[T]:
        """The future that ``work`` makes, as one of this loop's, whatever loop runs in this
        thread."""
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(cast("asyncio.AbstractEventLoop", self))
        try:
            return work()
        finally:
            asyncio._set_running_loop(outer)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=cast("asyncio.AbstractEventLoop", self))

    def call_soon(
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> None:
        run = (context or contextvars.copy_context()).run
        self._enqueue(partial(run, callback, *args))

    call_soon_threadsafe = call_soon

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Nobody reads the result of cancelled work."""


@dataclass(slots=True)
class _Interruption:
    at: float = -math.inf


_interruption = _Interruption()


def lately_interrupted() -> bool:
    """Something was cancelled within the last minute."""
    return time.monotonic() - _interruption.at < _LATELY_SECONDS


def _end(thread: threading.Thread) -> None:
    """Interrupt a thread, and wait for it for a while."""
    raise_in(thread)
    thread.join(PATIENCE_SECONDS)
