"""Processes many items with several tasks of one event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

LAST_SECONDS = 10.0
"""Maximum seconds for requests in flight when another item fails, since they were probably billed.
"""


async def for_each(items: Iterable[T], at_once: int, work: Callable[[T], Awaitable[None]]) -> None:
    """Await ``work`` for every item, ``at_once`` of them at a time, in the order of ``items``.

    When one raises, no other begins, the running ones get ``LAST_SECONDS`` to end, and the first
    error is raised. When this is cancelled, all end at once.
    """
    waiting = deque(items)

    async def worker() -> None:
        try:
            while waiting:
                await work(waiting.popleft())
        except BaseException:
            waiting.clear()
            raise

    workers = [asyncio.create_task(worker()) for _ in range(min(at_once, len(waiting)))]
    if not workers:
        return
    try:
        ended, going = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        if going:
            await asyncio.wait(going, timeout=LAST_SECONDS)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    for task in ended:
        task.result()
