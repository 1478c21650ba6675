"""How many requests to one server are in flight together: more while it keeps its pace, fewer when
it refuses."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable

_EVEN = 1.25
"""A round that takes at most 1.25 times as long as the quickest one had room for more requests."""
_QUEUED = 2.0
"""One that takes so many times as long mostly waited for its turn: a server that is full answers
no more requests a second, however many wait."""
_KEPT = 0.75
"""Share of the concurrency that remains after a cut."""
_BORNE = 8
"""One refusal in so many is borne: some servers refuse a few at any load, and they are tried again.
"""

Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class InFlight:
    """A gate for requests. Safe to use from the event loops of several threads.

    Additive increase, multiplicative decrease (Chiu and Jain, 1989), in rounds of as many answers
    as are let in. More refusals in a round than one in eight take a quarter off what is let in,
    once for all that were under way; every other round lets in one more, up to ``usual``. From
    there to ``most`` it goes by latency: twice as many at a time while rounds take no longer, then
    an eighth more, and a quarter less when requests begin to queue.

    ``clock``: seconds that never go back.
    """

    def __init__(
        self, usual: int, most: int = 0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._usual, self._most = usual, max(usual, most)
        self._clock = clock
        self._limit = usual
        self._inside = 0
        self._waiting: deque[Waiter] = deque()
        self._cut_at = float("-inf")
        self._doubling = True
        self._pace: object = None
        self._quickest = float("inf")
        self._seconds = 0.0
        self._answers = self._refusals = 0
        self._latest: float | None = None
        self._lock = threading.Lock()

    @property
    def limit(self) -> int:
        """So many are let in at present."""
        return self._limit

    @property
    def seconds(self) -> float | None:
        """How long an answer took on average, in the latest whole round; None before its end."""
        return self._latest

    @property
    def most(self) -> int:
        """So many may ever be."""
        return self._most

    async def enter(self) -> None:
        """Wait for room, and take it until ``leave``."""
        with self._lock:
            if self._inside < self._limit and not self._waiting:
                self._inside += 1
                return
            loop = asyncio.get_running_loop()
            turn = loop.create_future()
            self._waiting.append((loop, turn))
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                if (loop, turn) in self._waiting:
                    self._waiting.remove((loop, turn))
                else:  # it was let in at the same moment
                    self._inside -= 1
                    self._let_in()
            raise

    def leave(self) -> None:
        """Give room back."""
        with self._lock:
            self._inside -= 1
            self._let_in()

    def expect(self, pace: object) -> None:
        """Begin to measure anew if requests are of another kind, since those take another time."""
        with self._lock:
            if pace != self._pace:
                self._pace, self._quickest = pace, float("inf")
                self._begin_round()

    def note_answer(self, sent_at: float) -> None:
        """Note the answer to a request that was sent at ``sent_at``."""
        with self._lock:
            self._seconds += self._clock() - sent_at
            self._answers += 1
            if self._answers >= self._limit:
                self._latest = self._seconds / self._answers
                self._adapt(self._latest)
                self._begin_round()
                self._let_in()

    def note_refusal(self, sent_at: float) -> None:
        """Note that the server refused a request, sent at ``sent_at``, for lack of room."""
        with self._lock:
            if sent_at < self._cut_at:
                return  # it was under way with those that led to the cut
            self._refusals += 1
            if self._refusals <= self._limit // _BORNE:
                return
            self._limit = max(1, int(_KEPT * self._limit))
            self._cut_at, self._doubling = self._clock(), False
            self._begin_round()

    def _begin_round(self) -> None:
        self._seconds, self._answers, self._refusals = 0.0, 0, 0

    def _adapt(self, seconds: float) -> None:
        """Change the limit after a round; ``seconds`` is the mean time of its answers."""
        self._quickest = min(self._quickest, seconds)
        if self._limit < self._usual:
            self._limit += 1
        elif seconds <= _EVEN * self._quickest:
            more = self._limit if self._doubling else max(1, self._limit // 8)
            self._limit = min(self._most, self._limit + more)
        else:
            self._doubling = False
            if seconds > _QUEUED * self._quickest:
                self._limit = max(self._usual, int(_KEPT * self._limit))

    def _let_in(self) -> None:
        """Wake as many as there is room for; under the lock."""
        while self._waiting and self._inside < self._limit:
            loop, turn = self._waiting.popleft()
            try:
                loop.call_soon_threadsafe(_grant, turn)
            except RuntimeError:  # that loop is closed, and nobody waits there any more
                continue
            self._inside += 1


def _grant(turn: asyncio.Future[None]) -> None:
    if not turn.done():  # else it was cancelled, and gives its place back itself
        turn.set_result(None)
