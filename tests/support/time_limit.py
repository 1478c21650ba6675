"""A time limit inside a test: what never ends fails, and says where it stood."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """Raises AssertionError in this, the main, thread where the block takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"not done after {seconds} s: {what}")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
