"""The time that the rules may take for one plan: CPU time of the thread that plans, so that a busy
machine plans as an idle one does."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time


class RuleTime:
    """A limit of ``most`` milliseconds from now on; 0: none. Python's garbage collection, which
    depends on everything else in the process, does not count."""

    def __init__(self, most: int) -> None:
        self._most = most / 1e3
        self._thread = threading.get_ident()
        self._collected = 0.0
        self._collecting = 0.0
        self._start = seconds_of_thread()

    def is_over(self) -> bool:
        """Whether the rules have had their time."""
        if not self._most:
            return False
        return seconds_of_thread() - self._start - self._collected > self._most

    def note(self, phase: str, info: dict[str, int]) -> None:
        """Leave out a collection of garbage: see ``gc.callbacks``."""
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting = seconds_of_thread()
        else:
            self._collected += seconds_of_thread() - self._collecting


@contextmanager
def limited_to(most: int) -> Iterator[RuleTime]:
    """The time of the rules from here on, with a limit of ``most`` milliseconds."""
    time = RuleTime(most)
    gc.callbacks.append(time.note)
    try:
        yield time
    finally:
        gc.callbacks.remove(time.note)


def seconds_of_thread() -> float:
    """The clock; tests put another one in its place."""
    return thread_time()
