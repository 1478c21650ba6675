"""The common part of stores that machines share: keys, checksums, and outages."""

from __future__ import annotations

import atexit
import threading
import time
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import islice
from typing import TypeVar

from blendfusion.errors import CacheWarning
from blendfusion.models.protocol.events import cache_trouble
from blendfusion.models.protocol.forks import watch
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.shared_stores.kept_rows import KeptRows
from blendfusion.models.stores.entry import (
    REFRESHED_AFTER_SECONDS,
    DamagedStore,
    Entry,
    Row,
    check_rows,
    row_of,
)
from blendfusion.models.stores.key import Keys, model_prefix
from blendfusion.models.stores.memory import StoreStats
from blendfusion.types import Answer, Task

T = TypeVar("T")

_ROWS_AT_ONCE = 5_000
_PAUSE_SECONDS = 30.0
"""How long a store that failed again and again is left alone before it is tried again,"""
_FIRST_PAUSE_SECONDS = 0.25
"""and how long one that failed for the first time is."""
_CLOSE_SECONDS = 10.0
"""How long closing waits for a place that is out of reach, with answers to write."""
_IDLE_SECONDS = 1.0
_SHARE_OF_WAITING = 0.1
"""How much of the time between two calls the second may wait until the answers of the first are
written: a process that is killed has then seldom more than one call's answers to lose."""


class Unreachable(Exception):
    """The store cannot be used now; the text says why and what to do, without secrets."""

    def __init__(self, text: str, *, readable: bool = False, lasting: bool = False) -> None:
        super().__init__(text)
        self.readable = readable
        """Only writing is what fails."""
        self.lasting = lasting
        """It does not pass by itself: a password, a right, a database that is not there."""


class SharedStore(ABC):
    """A store of answers by key in a place that several machines reach.

    A subclass reads and writes rows. In an outage, answers stay in the memory of this process and
    one CacheWarning says so; the place is tried again after moments that grow to half a minute, and
    gets them then. Sessions write behind their batches: see ``write_behind``. What waits longer
    than from one call to the next is kept in a file meanwhile, for the case of a kill.
    """

    outlives_process = True

    path: str
    """Where the answers are, without secrets: stores of one place share requests under way."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._late: dict[bytes, Row] = {}
        """The rows that are to be written."""
        self._late_lock = threading.Condition()
        self._write_lock = threading.RLock()
        self._is_behind = False
        self._thread: threading.Thread | None = None
        self._called_at = 0.0
        """When answers came last, or the first ones were looked up."""
        self._is_opening = False
        """Whether a look-up has begun the thread that writes, which opens what it needs."""
        self._read_at = self._write_at = 0.0
        """When it may be tried next."""
        self._pause_seconds = 0.0
        self._problem: Unreachable | None = None
        """The outage at present."""
        self._kept: KeptRows | None = None
        """The rows that wait, in files; None before they are looked for."""
        self._warned: set[str] = set()
        self._due: list[str] = []
        _STORES.add(self)
        watch(self)

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
        if not values:
            return {}
        if self._is_behind and not self._called_at:
            self._begin_opening()
        self._take_kept()
        keys = Keys(fingerprint, task)
        wanted = keys.of_each(values)
        with self._late_lock:
            late = [self._late[key] for key in wanted if key in self._late]
        found = {wanted[key]: answer for key, answer, _ in check_rows(late)}
        read = self._attempt(lambda: self._find(keys.prefix, wanted), None)
        return found if read is None else read | found

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        keys, now = Keys(fingerprint, task), int(self._clock())
        rows = [r for v, a in answers.items() if (r := row_of(Entry(keys.of(v), a, now)))]
        kept = self._take_kept()
        with self._late_lock:
            if self._is_behind:
                self._wait_for_the_last_call()
            waits = bool(self._late) or self._problem is not None
            self._late |= {row[0]: row for row in rows}
            if waits and not (self._problem is not None and self._problem.lasting):
                kept.add(self._late.values() if kept.is_empty else rows)
        if self._is_behind:
            self._wake()
            self._warn()
        else:
            self._attempt(self._write_late, None, writes=True)

    def earlier(self, fingerprint: str, task: Task, most: int) -> list[str]:
        prefix = Keys(fingerprint, task).prefix
        stored = self._attempt(lambda: self._texts(prefix, most), list[str]())
        with self._late_lock:
            late = [row[1] for key, row in self._late.items() if key.startswith(prefix)]
        return [*stored, *(text for text in late if text is not None)][:most]

    def clear(self, fingerprint: str | None = None) -> None:
        prefix = b"" if fingerprint is None else model_prefix(fingerprint)
        with self._write_lock, self._late_lock:
            self._take_kept().clear()
            self._late = {k: row for k, row in self._late.items() if not k.startswith(prefix)}
            self._take_kept().add(self._late.values())
        self._attempt(lambda: self._forget(prefix), None, writes=True)

    def stats(self) -> StoreStats:
        return self._attempt(self._stats, StoreStats(0, 0))

    def close(self) -> None:
        """Write what is to be written, also after an outage of some seconds, and let go of the
        place. Warns (CacheWarning) of answers that could not be written."""
        if self._late and not self.flush(_CLOSE_SECONDS if self._is_behind else 0.0):
            if self._problem is not None and not self._problem.lasting:
                self._tell(
                    f"{len(self._late):,} answers are not yet in the answer cache {self.path}: "
                    f"{self._problem}. As long as this process lives, the next use of the session, "
                    "or closing it once more, writes them."
                )
            self._warn()
        self._let_go()

    @abstractmethod
    def _let_go(self) -> None:
        """Let go of connections and the like."""

    def _take_kept(self) -> KeptRows:
        """The rows in files; at first, what others have left there is to be written here, too."""
        with self._late_lock:
            if self._kept is None:
                self._kept = KeptRows(self.path)
                self._late = {row[0]: row for row in self._kept.take()} | self._late
                if self._late and self._is_behind:
                    self._wake()
            return self._kept

    # --- writing behind --------------------------------------------------------------------------

    def write_behind(self) -> None:
        """From now on, another thread writes what ``store_many`` gets. ``store_many`` waits a tenth
        of the time since its last call, at most, for what that call gave. ``flush`` and ``close``
        wait for all answers, and so does the end of the program."""
        self._is_behind = True

    def _begin_opening(self) -> None:
        """Let the thread that writes open what it needs, while the first answers are asked."""
        with self._late_lock:
            if not self._called_at:
                self._called_at, self._is_opening = time.monotonic(), self._thread is None
                self._wake()

    def _wait_for_the_last_call(self) -> None:
        """Wait for a moment until its answers are written, or known to be out of reach; the first
        answers after a look-up wait until the writer is open."""
        self._late_lock.wait_for(lambda: not self._is_opening, _CLOSE_SECONDS)
        allowed = _SHARE_OF_WAITING * (time.monotonic() - self._called_at)
        self._late_lock.wait_for(
            lambda: not self._late or self._write_at > time.monotonic(),
            min(allowed, _CLOSE_SECONDS) if self._called_at else 0.0,
        )
        self._called_at = time.monotonic()

    def _open_writer(self) -> None:  # noqa: B027 (most places need nothing)
        """Open what the thread that writes needs, before there is something to write. Raises
        Unreachable."""

    def flush(self, seconds: float = _CLOSE_SECONDS) -> bool:
        """Write what is to be written; whether that was possible within so many seconds."""
        deadline = time.monotonic() + seconds
        while self._late:
            if self._write_now() or not self._late:
                continue
            lasting = self._problem is not None and self._problem.lasting
            if lasting or time.monotonic() >= deadline:
                return False
            time.sleep(_FIRST_PAUSE_SECONDS)
        return True

    def _wake(self) -> None:
        with self._late_lock:
            self._late_lock.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="answers")
                self._thread.start()

    def _work(self) -> None:
        """Write rows as they come, until none has come for a moment."""
        with suppress(Unreachable):  # the first answers see it again
            self._open_writer()
        with self._late_lock:
            self._is_opening = False
            self._late_lock.notify_all()
        while True:
            with self._late_lock:
                pause = self._write_at - time.monotonic()
                if not self._late:
                    self._late_lock.wait(_IDLE_SECONDS)
                elif pause > 0:
                    self._late_lock.wait(pause)
                if not self._late:
                    self._thread = None
                    return
            if time.monotonic() >= self._write_at:
                self._write_now()

    def _write_now(self) -> bool:
        """Write what waits to be written; False in an outage, which the next use warns of."""
        begun = time.monotonic()
        try:
            self._write_late()
        except Unreachable as problem:
            self._pause(problem, time.monotonic() - begun)
            return False
        return True

    def _write_late(self) -> None:
        """Write the rows that are to be written. Raises Unreachable."""
        with self._write_lock:
            while True:
                with self._late_lock:
                    rows = list(islice(self._late.values(), _ROWS_AT_ONCE))
                    if not rows and self._kept is not None:
                        self._kept.clear()
                if not rows:
                    return
                writer = self._writer()
                with writer._lock:
                    writer._write(rows)
                self._resume(written=True)
                with self._late_lock:
                    for row in rows:
                        if self._late.get(row[0]) is row:
                            del self._late[row[0]]
                    self._late_lock.notify_all()

    def _writer(self) -> SharedStore:
        """The store that writes: itself, or another one of the same place, so that those who read
        need not wait."""
        return self

    def after_fork(self) -> None:
        """Begin anew in a new process: another thread of the parent may have held the lock."""
        self._lock, self._write_lock = threading.RLock(), threading.RLock()
        self._late_lock, self._thread = threading.Condition(), None
        self._called_at, self._is_opening = 0.0, False
        self._is_behind = False  # it may end without a word
        self._kept = None

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
            self._tidy(lambda: self._drop(damaged))
            self._tell_damage(len(damaged))
        fresh = int(self._clock()) - REFRESHED_AFTER_SECONDS
        stale = [key for key, _, used in whole if used < fresh]
        if stale:
            self._tidy(lambda: self._refresh(stale, int(self._clock())))
        return {wanted[key]: answer for key, answer, _ in whole}

    def _tidy(self, operation: Callable[[], None]) -> None:
        """Change what a look-up found to be changed, unless the place cannot be written: what was
        found is good all the same."""
        begun = time.monotonic()
        if begun < self._write_at:
            return
        try:
            operation()
        except Unreachable as problem:
            self._pause(problem, time.monotonic() - begun)

    def _tell_damage(self, number: int) -> None:
        self._tell(
            f"the answer cache {self.path} has damaged answers ({number} of those that were read). "
            "They are left out, and asked again."
        )

    def _attempt(self, operation: Callable[[], T], otherwise: T, *, writes: bool = False) -> T:
        """The result of ``operation``; ``otherwise`` in an outage."""
        # Those that write take _write_lock before _lock.
        writing = nullcontext() if self._is_behind else self._write_lock
        try:
            with writing, self._lock:
                begun = time.monotonic()
                if begun < (self._write_at if writes else self._read_at):
                    return otherwise
                try:
                    if self._late and not self._is_behind and begun >= self._write_at:
                        self._write_before(writes=writes)
                    found = operation()
                except Unreachable as problem:
                    self._pause(problem, time.monotonic() - begun)
                    return otherwise
                self._resume(written=writes)
                return found
        finally:
            self._warn()

    def _write_before(self, *, writes: bool) -> None:
        """Write the rows that wait, before another operation, which can do without if it only
        reads. Raises Unreachable."""
        begun = time.monotonic()
        try:
            self._write_late()
        except Unreachable as problem:
            if writes or not problem.readable:
                raise
            self._pause(problem, time.monotonic() - begun)

    def _warn(self) -> None:
        """Give the warnings that are due; last, as one may be made an error."""
        due, self._due = self._due, []
        for text in due:
            cache_trouble(text)
            warnings.warn(text, CacheWarning, stacklevel=4)

    def _pause(self, problem: Unreachable, took_seconds: float) -> None:
        """Leave the place alone for a while, longer each time, and longer where it took long to
        find that out."""
        grown = max(2 * self._pause_seconds, _FIRST_PAUSE_SECONDS, 3 * took_seconds)
        self._pause_seconds = min(grown, _PAUSE_SECONDS)
        self._problem = problem
        self._write_at = time.monotonic() + self._pause_seconds
        if not problem.readable:
            self._read_at = self._write_at
        with self._late_lock:
            self._late_lock.notify_all()
        use = "written: " if problem.readable else "used: "
        self._tell(
            f"the answer cache {self.path} cannot be {use}{problem}. New answers are kept in memory, "
            f"and it is tried again, at least every {_PAUSE_SECONDS:.0f} seconds."
        )

    def _resume(self, *, written: bool) -> None:
        """Note that the place is in reach, and whether it could be written."""
        if self._problem is not None and (written or not self._problem.readable):
            self._problem, self._pause_seconds = None, 0.0
            self._read_at = self._write_at = 0.0

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


@atexit.register
def _write_at_exit() -> None:
    for store in list(_STORES):
        if store._late and store._is_behind:
            store.close()
