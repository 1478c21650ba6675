"""SIGTERM and SIGHUP end a command as Ctrl-C does: answers are kept, half a file is removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_NAMES = ("SIGTERM", "SIGHUP")


class Termination(KeyboardInterrupt):
    """The process was asked to end by a signal."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status
        """The exit status of the process, as shells count."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raises Terminated in the main thread for such a signal, once; a signal that is ignored, as
    SIGHUP below nohup, stays so, and one with a handler keeps it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)  # a second one ends at once
    raise Termination(128 + number)
