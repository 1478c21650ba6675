"""Ctrl-C for threads: one thread ends the work of another, which hears it where it waits."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_GRACE_SECONDS = 0.5
"""How long a thread may take to hear an interrupt by itself; waits look for one more often."""
_CHECKS = 100
"""Turns of a loop; Python looks for an interrupt in each."""

_lock = threading.Lock()
_interruptible: set[threading.Thread] = set()
_interrupted: set[threading.Thread] = set()
"""Threads that have not heard their interrupt yet."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Lets ``interrupt`` reach this thread inside the block, wherever it waits, as Ctrl-C reaches
    the main thread."""
    thread = threading.current_thread()
    _interruptible.add(thread)
    try:
        yield
    finally:
        _interruptible.discard(thread)
        hear_interrupt()


def hears_interrupts(thread: threading.Thread) -> bool:
    """Whether Ctrl-C or ``interrupt`` reaches the thread."""
    return thread is threading.main_thread() or thread in _interruptible


def interrupt(thread: threading.Thread) -> None:
    """End what the thread does in its ``interruptible`` block: it raises KeyboardInterrupt where it
    waits next. A thread that does not wait raises it wherever it is in Python, again and again
    until it hears it: Python drops what is raised in a finalizer."""
    _interrupted.add(thread)
    threading.Thread(
        target=_insist, args=(thread,), name="blendfusion-interrupt", daemon=True
    ).start()


def _insist(thread: threading.Thread) -> None:
    while thread in _interrupted and thread.is_alive():
        time.sleep(_GRACE_SECONDS)
        with _lock:
            if thread in _interrupted and thread.is_alive():
                raise_in(thread)
    _interrupted.discard(thread)


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if this thread was interrupted. Waits call it several times a
    second."""
    if _interrupted and threading.current_thread() in _interrupted:
        hear_interrupt()
        raise KeyboardInterrupt


def hear_interrupt() -> None:
    """Say that this thread ends its work: nothing is raised while it does."""
    thread = threading.current_thread()
    with _lock:
        was_interrupted = thread in _interrupted
        _interrupted.discard(thread)
    if was_interrupted:
        # An error that ``_insist`` has set is raised and dropped here. Clearing it instead makes
        # CPython 3.11 look for it at every call and loop of the process from then on, which never
        # ends under a profiler.
        with suppress(KeyboardInterrupt):
            raise_in(thread)
            for _ in range(_CHECKS):
                pass


def raise_in(thread: threading.Thread) -> None:
    """Have a thread raise KeyboardInterrupt as soon as it is in Python."""
    thread_id = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread_id, ctypes.py_object(KeyboardInterrupt))
