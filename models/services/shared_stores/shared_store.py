"""The common part of stores that machines share: keys, checksums, and outages."""

from __future__ import annotations

import os
import threading
import time
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from blendfusion.errors import CacheWarning
from blendfusion.models.protocol.events import cache_trouble
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.entry import (
    REFRESHED_AFTER_SECONDS,
    DamagedStore,
    Entry,
    Row,
    check_rows,
    row_of,
)
from blendfusion.models.stores.key import Keys, model_prefix
from blendfusion.models.stores.memory import MemoryStore, StoreStats
from blendfusion.types import Answer, Task

T = TypeVar("T")

_ROWS_AT_ONCE = 5_000
_PAUSE_SECONDS = 30.0
"""How long a store that failed is left alone before it is tried again."""


class Unreachable(Exception):
    """The store cannot be used now; the text says why and what to do, without secrets."""

    def __init__(self, text: str, *, readable: bool = False) -> None:
        super().__init__(text)
        self.readable = readable
        """Only writing is what fails."""


class SharedStore(ABC):
    """A store of answers by key in a place that several machines reach.

    A subclass reads and writes rows. In an outage, answers stay in the memory of this process and
    one CacheWarning says so; half a minute later the place is tried again, and gets them then.
    """

    outlives_process = True

    path: str
    """Where the answers are, without secrets: stores of one place share requests under way."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._beside = MemoryStore()
        self._late: dict[bytes, Row] = {}
        """The rows that could not be written."""
        self._read_at = self._write_at = 0.0
        """When it may be tried next."""
        self._warned: set[str] = set()
        self._due: list[str] = []
        _STORES.add(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    # --- what a subclass has ---------------------------------------------------------------------

    @abstractmethod
    def _rows(self, prefix: bytes, keys: Sequence[bytes]) -> Iterable[Row]:
        """The stored rows of these keys, which begin with ``prefix``. Raises Unreachable."""

    @abstractmethod
    def _write(self, rows: Sequence[Row]) -> int:
        """Keep the rows whose keys are new; how many these are. Raises Unreachable."""

    @abstractmethod
    def _refresh(self, keys: Sequence[bytes], now: int) -> None:
        """Note that these were used now. Raises Unreachable."""

    @abstractmethod
    def _drop(self, keys: Sequence[bytes]) -> None:
        """Forget damaged rows. Raises Unreachable."""

    @abstractmethod
    def _texts(self, prefix: bytes, most: int) -> list[str]:
        """Some texts of keys that begin with ``prefix``. Raises Unreachable."""

    @abstractmethod
    def _forget(self, prefix: bytes) -> None:
        """Forget the rows whose keys begin with ``prefix``. Raises Unreachable."""

    @abstractmethod
    def _stats(self) -> StoreStats: ...

    @abstractmethod
    def _pages(self) -> Iterator[Sequence[Row]]:
        """All rows, ordered by key. Raises Unreachable."""

    # --- the protocol ----------------------------------------------------------------------------

    def get_many(
        self, fingerprint: str, task: Task, values: Sequence[Values]
    ) -> dict[Values, Answer]:
        found = self._beside.get_many(fingerprint, task, values)
        if not values:
            return found
        keys = Keys(fingerprint, task)
        wanted = keys.of_each(values)
        read = self._attempt(lambda: self._find(keys.prefix, wanted), None)
        return found if read is None else read | found

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        keys, now = Keys(fingerprint, task), int(self._clock())
        rows = [r for v, a in answers.items() if (r := row_of(Entry(keys.of(v), a, now)))]
        written: int | None = None
        try:
            written = self._attempt(lambda: self._write(rows), None, writes=True)
        finally:
            if written is None:
                self._beside.store_many(fingerprint, task, answers)
                self._late |= {row[0]: row for row in rows}

    def earlier(self, fingerprint: str, task: Task, most: int) -> list[str]:
        prefix = Keys(fingerprint, task).prefix
        stored = self._attempt(lambda: self._texts(prefix, most), list[str]())
        return (stored + self._beside.earlier(fingerprint, task, most))[:most]

    def clear(self, fingerprint: str | None = None) -> None:
        prefix = b"" if fingerprint is None else model_prefix(fingerprint)
        self._beside.clear(fingerprint)
        self._late = {k: row for k, row in self._late.items() if not k.startswith(prefix)}
        self._attempt(lambda: self._forget(prefix), None, writes=True)

    def stats(self) -> StoreStats:
        return self._attempt(self._stats, StoreStats(0, 0))

    @abstractmethod
    def close(self) -> None: ...

    # --- copies ----------------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """Every stored answer, ordered by its key. Raises OSError where they cannot be read."""
        try:
            for page in self._pages():
                whole, damaged = sorted_out(page)
                if damaged:
                    self._tell_damage(len(damaged))
                    self._warn()
                yield from (Entry(*row) for row in whole)
        except Unreachable as problem:
            raise OSError(str(problem)) from problem

    def add(self, entries: Iterable[Entry]) -> int:
        """Keep ``entries`` under their keys, and tell how many are new. Raises OSError where they
        cannot be written."""
        new, waiting = 0, iter(entries)
        try:
            while some := list(islice(waiting, _ROWS_AT_ONCE)):
                with self._lock:
                    new += self._write([row for row in map(row_of, some) if row is not None])
        except Unreachable as problem:
            raise OSError(str(problem)) from problem
        return new

    # --- reading and outages ---------------------------------------------------------------------

    def _find(self, prefix: bytes, wanted: Mapping[bytes, Values]) -> dict[Values, Answer]:
        rows = [row for row in self._rows(prefix, sorted(wanted)) if row[0] in wanted]
        try:
            whole = list(check_rows(rows))
        except DamagedStore:
            whole, damaged = sorted_out(rows)
            self._drop(damaged)
            self._tell_damage(len(damaged))
        fresh = int(self._clock()) - REFRESHED_AFTER_SECONDS
        stale = [key for key, _, used in whole if used < fresh]
        if stale:
            self._refresh(stale, int(self._clock()))
        return {wanted[key]: answer for key, answer, _ in whole}

    def _tell_damage(self, number: int) -> None:
        self._tell(
            f"the answer cache {self.path} has damaged answers ({number} of those that were read). "
            "They are left out, and asked again."
        )

    def _attempt(self, operation: Callable[[], T], otherwise: T, *, writes: bool = False) -> T:
        """The result of ``operation``; ``otherwise`` in an outage."""
        try:
            with self._lock:
                now = time.monotonic()
                if now < (self._write_at if writes else self._read_at):
                    return otherwise
                try:
                    self._catch_up(now)
                    return operation()
                except Unreachable as problem:
                    self._pause(problem)
                    return otherwise
        finally:
            self._warn()

    def _warn(self) -> None:
        """Give the warnings that are due; last, as one may be made an error."""
        due, self._due = self._due, []
        for text in due:
            cache_trouble(text)
            warnings.warn(text, CacheWarning, stacklevel=4)

    def _catch_up(self, now: float) -> None:
        """Write what an outage has kept from being written."""
        if self._late and now >= self._write_at:
            self._write(list(self._late.values()))
            self._late = {}

    def _pause(self, problem: Unreachable) -> None:
        self._write_at = time.monotonic() + _PAUSE_SECONDS
        if not problem.readable:
            self._read_at = self._write_at
        use = "written: " if problem.readable else "used: "
        self._tell(
            f"the answer cache {self.path} cannot be {use}{problem}. New answers are kept in memory, "
            f"and it is tried again every {_PAUSE_SECONDS:.0f} seconds."
        )

    def _tell(self, text: str) -> None:
        """Warn of this, once a store."""
        if text not in self._warned:
            self._warned.add(text)
            self._due.append(text)


def sorted_out(rows: Iterable[Row]) -> tuple[list[tuple[bytes, Answer, int]], list[bytes]]:
    """The rows that are as they were written, and the keys of the others."""
    whole: list[tuple[bytes, Answer, int]] = []
    damaged: list[bytes] = []
    for row in rows:
        try:
            whole += check_rows([row])
        except DamagedStore:
            damaged.append(row[0])
    return whole, damaged


_STORES: weakref.WeakSet[SharedStore] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_STORES):  # another thread of the parent may have held the lock
        store._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
