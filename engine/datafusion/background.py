"""Work in a thread of its own, while the event loop runs. Cancelling the task ends the work."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

from blendfusion.models.protocol.interrupts import interrupt, interruptible

T = TypeVar("T")

_PATIENCE_SECONDS = 10.0
"""How long a cancelled task waits for its work to end: a function of the program may hear nothing.
"""


async def in_background(work: Callable[[], T]) -> T:
    """The result of ``work()``; its exceptions are raised. When the task is cancelled, the work is
    interrupted as by Ctrl-C, and ends before the cancellation is passed on."""
    worker = _Worker()
    try:
        return await worker.do(work)
    finally:
        await worker.end()


async def items(make: Callable[[], Generator[T, None, None]]) -> AsyncGenerator[T, None]:
    """Yields the items of the generator that ``make`` returns. One thread computes each item on
    demand; closing this generator closes the other."""
    worker = _Worker()
    made: list[Generator[T, None, None]] = []

    def following() -> list[T]:
        if not made:
            made.append(make())
        return [item for item in (next(made[0], None),) if item is not None]

    def last() -> None:
        for generator in made:
            generator.close()

    try:
        while found := await worker.do(following):
            yield found[0]
    finally:
        await worker.end(last)


class _Worker:
    """One thread that does one piece of work after the other for one task, in one context."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._last: Callable[[], None] | None = None
        self._ended = asyncio.Event()
        self._busy = False
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="blendfusion-async", daemon=True
        )
        self._thread.start()

    async def do(self, work: Callable[[], T]) -> T:
        """The result of ``work``."""
        result: asyncio.Future[T] = self._loop.create_future()

        def on_end(found: T | None, problem: BaseException | None) -> None:
            self._busy = False
            if result.done():  # nobody waits any more
                return
            if isinstance(problem, KeyboardInterrupt):
                result.cancel()
            elif problem is not None:
                result.set_exception(problem)
            else:
                result.set_result(found)  # type: ignore[arg-type]

        def settle() -> None:
            found: T | None = None
            problem: BaseException | None = None
            try:
                found = work()
            except BaseException as raised:
                problem = raised
            self._tell(on_end, found, problem)

        self._busy = True
        self._work.put(settle)
        return await result

    async def end(self, last: Callable[[], None] | None = None) -> None:
        """Interrupt the current work, do ``last``, and wait for the end of the thread."""
        self._last = last
        self._work.put(None)
        if self._busy:
            interrupt(self._thread)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _PATIENCE_SECONDS)

    def _run(self) -> None:
        with interruptible():
            for step in (self._serve, self._finish):
                with suppress(KeyboardInterrupt):  # it may come late
                    step()
        self._tell(self._ended.set)

    def _serve(self) -> None:
        while (settle := self._work.get()) is not None:
            settle()

    def _finish(self) -> None:
        if self._last is not None:
            self._last()

    def _tell(self, news: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens
            self._loop.call_soon_threadsafe(news, *args)
