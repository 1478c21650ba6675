"""The ends of queries that wait no longer for replies under way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from blendfusion.services.cluster import protocol


class Endings:
    """The ends of queries under way, of one back end. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._over_at = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the replies that a query at its end waits for have had their time."""
        return self._number > 0 and time.monotonic() >= self._over_at

    @contextmanager
    def ending(self) -> Iterator[None]:
        """See ``BackEnd.ending``."""
        with self._lock:
            if not self._number:
                self._over_at = time.monotonic() + protocol.GRACE_SECONDS
            self._number += 1
        try:
            yield
        finally:
            with self._lock:
                self._number -= 1
