"""Kills processes at random moments."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Pick = Callable[[random.Random], int | None]
"""Finds a process to kill; None: none yet."""
_PAUSE_SECONDS = 0.005
"""The time until the next look for a process, where there was none yet."""


@contextmanager
def killing(pick: Pick, seed: int, *, most: int, seconds: float) -> Iterator[list[int]]:
    """Kills up to ``most`` processes in the block, after random pauses of less than so many seconds
    each. Yields the list of those killed."""
    rng, done, killed = random.Random(seed), threading.Event(), list[int]()
    problems: list[BaseException] = []

    def kill() -> None:
        try:
            pause = rng.random() * seconds
            while len(killed) < most and not done.wait(pause):
                process = pick(rng)
                if process is None:
                    pause = _PAUSE_SECONDS
                    continue
                pause = rng.random() * seconds
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.append(process)
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        done.set()
        thread.join()
    if problems:
        raise problems[0]
