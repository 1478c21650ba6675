"""Runs work in a thread of its own, so that Ctrl-C reaches the caller."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import math
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from blendfusion.models.protocol.allowance import check_time

T = TypeVar("T")

PATIENCE_SECONDS = 0.5
"""Maximum seconds that an interrupted caller waits for its work to stop."""
_EXIT_SECONDS = 10.0
"""Maximum seconds that the end of the process waits for work that did not stop in time."""
_SLICE_SECONDS = 0.2
"""A wait without an end cannot be interrupted on every platform."""


def run_aside(
    work: Callable[[], T], stop: Callable[[], None], patience_seconds: float = PATIENCE_SECONDS
) -> T:
    """Run ``work()`` in a new thread; returns its result or raises its error.

    Python handles signals on the main thread between two of its own instructions, so not while a C
    library computes there. Here the caller only waits. When it is interrupted, or its time is over,
    ``stop`` is called, which must make ``work`` end; the exception goes on when it has, or after
    ``patience_seconds``.

    Work runs in a new thread whoever calls: what a library keeps for a thread that computes (GNU
    OpenMP: its workers) is gone in a forked child, where the next computation would wait for it.
    It runs in the caller's context: its spans stand in the span that is current there.
    """
    results: list[T] = []
    raised: list[BaseException] = []
    finished = threading.Event()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:
            raised.append(error)
        finally:
            finished.set()

    thread = threading.Thread(target=run, name="blendfusion-model", daemon=True)
    try:
        thread.start()
        # Not Thread.join: interrupted, it takes a running thread for ended (CPython before 3.13).
        while not finished.wait(_SLICE_SECONDS):
            check_time()
    except BaseException as error:
        if isinstance(error, RuntimeError) and thread.ident is None:
            raise  # no thread could be started
        stop()
        end = time.monotonic() + patience_seconds
        while (left := end - time.monotonic()) > 0 and not finished.wait(min(left, _SLICE_SECONDS)):
            pass
        if finished.is_set():
            thread.join()
        else:  # a library that computes while the process ends would take it down
            atexit.register(finished.wait, _EXIT_SECONDS)
        raise
    thread.join()
    if raised:
        raise raised[0]
    return results[0]


def run_confined(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of the coroutine ``work()``, or what it raised, as ``run_aside``: the caller's
    thread may already run an event loop (a notebook). The thread never outlives the call: when the
    caller is interrupted, the coroutine is cancelled, and what it opened is closed."""
    begun = threading.Event()
    handle: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def note_and_run() -> T:
        task = asyncio.current_task()
        assert task is not None
        handle.append((asyncio.get_running_loop(), task))
        begun.set()
        return await work()

    def run() -> T:
        try:
            return asyncio.run(note_and_run())
        finally:
            begun.set()

    def cancel() -> None:
        begun.wait()
        for loop, task in handle:
            with suppress(RuntimeError):  # it ended in the meantime, and its loop is closed
                loop.call_soon_threadsafe(task.cancel)

    return run_aside(run, cancel, math.inf)
