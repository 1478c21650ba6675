"""Shares expensive objects: created for the first user, freed with the last."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from blendfusion.models.protocol.forks import INHERITED, watch


class Closing(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Closing)


class Loan(Generic[T]):
    """A share in something; ``release`` gives it back, and may be called twice. A loan that nobody
    holds any more gives itself back."""

    def __init__(self, pool: Pool[T], entry: _Entry[T], thing: T) -> None:
        self.thing = thing
        self._pool, self._entry = pool, entry
        self.release = weakref.finalize(self, pool._give_back, entry, os.getpid())

    def again(self) -> Loan[T]:
        """One more, of the same thing."""
        with self._pool._hold_lock():
            self._entry.borrowers += 1
        return Loan(self._pool, self._entry, self.thing)


class Pool(Generic[T]):
    """A pool of shared objects under keys that tell any two apart. Safe for threads.

    Belongs to one process: in a forked child the pool is empty, and loans that the child inherits
    give nothing back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Hashable, _Entry[T]] = {}
        self._returned: deque[_Entry[T]] = deque()
        watch(self)

    def borrow(self, key: Hashable, make: Callable[[], T]) -> Loan[T]:
        """Lend the object under ``key``; make it if nobody holds it. Others who want it meanwhile
        wait, and make it themselves if that raises."""
        with self._hold_lock():
            entry = self._entries.setdefault(key, _Entry(key))
            entry.borrowers += 1
        try:
            with entry.lock:
                if entry.thing is None:
                    entry.thing = make()
                return Loan(self, entry, entry.thing)
        except BaseException:
            self._give_back(entry, os.getpid())
            raise

    def __len__(self) -> int:
        return len(self._entries)

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        finally:
            self._settle()

    def _give_back(self, entry: _Entry[T], process: int) -> None:
        if process == os.getpid():
            self._returned.append(entry)
            self._settle()

    def _settle(self) -> None:
        """Free what nobody holds any more. The garbage collector gives loans back at any time, also
        while this thread has the lock: loans returned then are settled when the lock is free
        again."""
        while self._returned and self._lock.acquire(blocking=False):
            unused = []
            try:
                while self._returned:
                    entry = self._returned.popleft()
                    entry.borrowers -= 1
                    if not entry.borrowers:
                        del self._entries[entry.key]
                        unused.append(entry.thing)
            finally:
                self._lock.release()
            for thing in unused:
                if thing is not None:
                    thing.close()

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        INHERITED.append(self._entries)  # not to be freed here, where nothing of it runs
        self._entries, self._returned = {}, deque()


@dataclass(slots=True)
class _Entry(Generic[T]):
    key: Hashable
    lock: threading.Lock = field(default_factory=threading.Lock)
    borrowers: int = 0
    thing: T | None = None
