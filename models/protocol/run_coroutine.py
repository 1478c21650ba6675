"""Runs a coroutine to its end in a thread of its own, which never outlives the call."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from blendfusion.models.protocol.allowance import check_time

T = TypeVar("T")

_SLICE_SECONDS = 0.2


def run_confined(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of ``work()``, or what it raised.

    A thread of its own, because the caller's may already run an event loop (a notebook). When the
    caller is interrupted, or its time is over, the coroutine is cancelled, what it opened is
    closed, and the thread has ended before the exception goes on.
    """
    results: list[T] = []
    raised: list[BaseException] = []
    started, finished = threading.Event(), threading.Event()
    handle: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def note_and_run() -> T:
        task = asyncio.current_task()
        assert task is not None
        handle.append((asyncio.get_running_loop(), task))
        started.set()
        return await work()

    def run() -> None:
        try:
            results.append(asyncio.run(note_and_run()))
        except BaseException as error:
            raised.append(error)
        finally:
            started.set()
            finished.set()

    # In the caller's context: spans of requests stand in the span that is current there.
    context = contextvars.copy_context()
    work_in = partial(context.run, run)
    thread = threading.Thread(target=work_in, name="blendfusion-http", daemon=True)
    thread.start()
    try:
        while not finished.wait(_SLICE_SECONDS):
            check_time()
    except BaseException:
        started.wait()
        for loop, task in handle:
            _cancel(loop, task)
        raise
    finally:
        _wait(finished)
        thread.join()
    if raised:
        raise raised[0]
    return results[0]


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[T]) -> None:
    try:
        loop.call_soon_threadsafe(task.cancel)
    except RuntimeError:  # it ended in the meantime, and its loop is closed
        return


def _wait(finished: threading.Event) -> None:
    # Not Thread.join: interrupted, it takes a running thread for ended (CPython before 3.13). In
    # slices: a wait without an end cannot be interrupted on every platform.
    while not finished.wait(_SLICE_SECONDS):
        pass
