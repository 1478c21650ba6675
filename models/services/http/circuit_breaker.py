"""The shared state of all requests to one server: pauses, and whether the server is gone."""

from __future__ import annotations

import asyncio
import random
import threading
import time

from blendfusion.models.services.http.rate_limit import Load, Rate
from blendfusion.models.services.http.retry import Retry

_REFUSED_AT_MOST = 5
"""Connections in a row that may fail where nothing is tried again."""


class Line:
    """One server, as its requests find it. Safe to use from the event loops of several threads.

    A server that cannot be reached says nothing about the value that was to be asked: all wait for
    it together, and no value loses a try.
    """

    def __init__(self, retry: Retry, rate: Rate) -> None:
        self.rate = rate
        self.reached = False
        """There was a reply of any kind."""
        self.served = False
        """There was a good one."""
        self._retry = retry
        self._free_at = 0.0  # these are times of time.monotonic()
        self._failed_at = 0.0
        self._refusals = 0
        self._in_vain = 0
        self._lock = threading.Lock()

    async def free(self, load: Load | None = None) -> None:
        """Wait until requests may go out; ``load`` is then counted against the limits in
        ``rate``."""
        while (left := self._free_at - time.monotonic()) > 0 or (
            load is not None and (left := self.rate.take(load)) > 0
        ):
            await asyncio.sleep(left)

    def pause(self, seconds: float) -> None:
        """Hold all requests back for ``seconds``."""
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic() + seconds)

    def note_reply(self) -> None:
        with self._lock:
            self.reached = True
            self._refusals = 0

    def note_failure(self, sent_at: float) -> bool:
        """Note that a request found no connection; True if the server is to be given up."""
        now = time.monotonic()
        with self._lock:
            if self._refusals == 0:
                self._failed_at = now
            if not self._retry.patient:
                self._refusals += 1
                return self._refusals >= _REFUSED_AT_MOST
            if self._refusals == 0 or sent_at >= self._free_at:  # else others noted it before
                self._refusals += 1
                self._free_at = now + self._backoff()
            return now - self._failed_at >= self._retry.most_seconds

    def _backoff(self) -> float:
        """Never near 0: one connection in a row is tried for all, so there is nothing to spread."""
        most = min(
            self._retry.base_seconds * 2 ** (self._refusals - 1), self._retry.most_seconds / 4
        )
        return random.uniform(most / 2, most)

    def note_answer(self) -> None:
        """A request got a good reply."""
        with self._lock:
            self.served = True
            self._in_vain = 0

    def note_no_answer(self, most: int) -> bool:
        """Note that a value came to nothing after every try; True if it is one of ``most`` in a
        row, which are then forgotten: another run may fare better."""
        with self._lock:
            self._in_vain += 1
            if self._in_vain < most:
                return False
            self._in_vain = 0
            return True
