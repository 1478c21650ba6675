"""Work for a client in a thread of its own, which ends once nobody waits for it any more."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from blendfusion.models.protocol.interrupts import interrupt, interruptible

T = TypeVar("T")

_SLICE_SECONDS = 0.2
"""How often it is looked whether the client is still there."""
_PATIENCE_SECONDS = 10.0
"""How long interrupted work is waited for: a function of the program may hear nothing."""


@dataclass(slots=True)
class _Outcome(Generic[T]):
    items: list[T]
    """One item; none at the end."""
    problem: BaseException | None = None


def watch(make: Callable[[], Generator[T, None, None]], is_left: Callable[[], bool]) -> Iterator[T]:
    """The items of the generator that ``make`` returns, each computed when it is taken. Once
    ``is_left()``, the computation is interrupted as by Ctrl-C, and the items end."""
    wanted: SimpleQueue[bool] = SimpleQueue()
    outcomes: SimpleQueue[_Outcome[T]] = SimpleQueue()

    def work() -> None:
        with interruptible(), suppress(KeyboardInterrupt):  # it may come late
            items = make()
            try:
                while wanted.get():
                    outcomes.put(_next_of(items))
            finally:
                items.close()

    context = contextvars.copy_context()
    thread = threading.Thread(
        target=context.run, args=(work,), name="blendfusion-client", daemon=True
    )
    thread.start()
    is_busy = False
    try:
        while not is_left():
            wanted.put(True)
            is_busy = True
            outcome = _outcome_of(outcomes, is_left)
            if outcome is None:
                return
            is_busy = False
            if outcome.problem is not None:
                raise outcome.problem
            if not outcome.items:
                return
            yield outcome.items[0]
    finally:
        wanted.put(False)
        if is_busy:
            interrupt(thread)
        thread.join(_PATIENCE_SECONDS)


def _next_of(items: Generator[T, None, None]) -> _Outcome[T]:
    try:
        return _Outcome([next(items)])
    except StopIteration:
        return _Outcome([])
    except BaseException as problem:
        return _Outcome([], problem)


def _outcome_of(
    outcomes: SimpleQueue[_Outcome[T]], is_left: Callable[[], bool]
) -> _Outcome[T] | None:
    """The next outcome, or None once nobody waits for it."""
    while True:
        with suppress(Empty):
            return outcomes.get(timeout=_SLICE_SECONDS)
        if is_left():
            return None
