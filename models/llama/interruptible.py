"""Runs work in a thread of its own, so that Ctrl-C reaches the caller."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

from blendfusion.models.protocol.allowance import check_time

T = TypeVar("T")

PATIENCE_SECONDS = 0.5
"""Maximum seconds that an interrupted caller waits for its work to stop."""


def run_aside(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """The result of ``work()``, or what it raised.

    Python handles signals on the main thread between two of its own instructions, so not while a C
    library computes there. Here the caller only waits. When it is interrupted, or its time is over,
    ``stop`` is called, which must make ``work`` end; the exception goes on when it has, or after
    ``PATIENCE_SECONDS``.

    Work runs in a new thread whoever calls: what a library keeps for a thread that computes (GNU
    OpenMP: its workers) is gone in a forked child, where the next computation would wait for it.
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
        # In slices: a wait without an end cannot be interrupted on every platform.
        while not finished.wait(0.2):
            check_time()
    except BaseException:
        stop()
        finished.wait(PATIENCE_SECONDS)
        raise
    if raised:
        raise raised[0]
    return results[0]
