"""The protocol of a back end: places that take a message and give a reply."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

ROWS = ("rows", "more rows")
"""A worker runs two fragments at a time: one scans while the other waits for answers."""
LANES = (*ROWS, "answers", "range")

BEAT_SECONDS = 0.5
"""How often a process says that it is alive."""
STILL_SECONDS = 15.0
"""A process that says nothing for so long stands still, and is ended: then it is gone."""
GRACE_SECONDS = 0.4
"""How long replies under way are waited for after an interruption."""

LEAVE_SECONDS = 0.8
"""When an interrupted query leaves behind what does not end, and what nobody can be told of."""


class PlaceGone(Exception):
    """The process or machine of a place is gone."""


class Place(Protocol):
    """A thread in another process, on this machine or another one."""

    @property
    def address(self) -> str:
        """The address at which other workers reach the process."""
        ...

    def call(self, message: bytes) -> bytes:
        """The reply to a message; one at a time. Raises PlaceGone."""
        ...

    def close(self) -> None:
        """End it. May be called twice."""
        ...


class BackEnd(Protocol):
    """Starts places. Each worker has one for each lane: two run fragments, one asks models, one
    owns a range of values, and replies to several messages at a time."""

    @property
    def size(self) -> int:
        """The number of workers."""
        ...

    @property
    def one_machine(self) -> bool:
        """Whether all workers are on this machine, and open its files."""
        ...

    def open(self, worker: int, lane: str) -> Place:
        """The place of a worker for a lane; a worker that is gone is started
        again. Raises PlaceGone."""
        ...

    def give_back(self, worker: int, lane: str, place: Place) -> None:
        """Keep a place, which waits for a message, for the next ``open``."""
        ...

    def ending(self) -> AbstractContextManager[None]:
        """Inside the block, a worker that owes the session a reply is ended ``GRACE_SECONDS`` after
        its beginning: whoever waits for it gets PlaceGone."""
        ...

    def close(self) -> None:
        """End all places. May be called twice."""
        ...
