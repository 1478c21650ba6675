"""A store in one SQLite file that threads and processes share, with least-recently-used
eviction."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from blendfusion.errors import CacheWarning
from blendfusion.models.protocol.events import cache_trouble
from blendfusion.models.protocol.forks import INHERITED, watch
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.entry import (
    REFRESHED_AFTER_SECONDS,
    DamagedStore,
    Entry,
    Row,
    after,
    check_rows,
    pieces,
    row_of,
)
from blendfusion.models.stores.key import MODEL_BYTES, Keys, model_prefix
from blendfusion.models.stores.memory import MemoryStore, StoreStats
from blendfusion.models.stores.sqlite_file import (
    BUSY_SECONDS,
    ForeignFileError,
    identity,
    is_busy,
    is_damage,
    is_interrupted,
    open_file,
    or_not,
    patiently,
    set_aside,
    transaction,
)
from blendfusion.types import Answer, Task

T = TypeVar("T")

MEGABYTE = 1_000_000
_AT_ONCE = 500
"""Keys of one look-up statement: every version of SQLite accepts this number."""
_SCANNED = 1.2
"""Rows that may be read for one that is wanted."""
_ROWS_OF_A_TRANSACTION = 5_000
_HOUR = 3_600
_KEPT, _FULL = 0.8, 0.9
_HURRIED_SECONDS = 0.2
"""How long answers wait for a lock after an interruption."""
_LOCKED_SECONDS = 5.0
"""How long a file that was locked is left alone."""
_UNTIL_FREE = "New answers are kept in memory until it is free."
_COLUMNS = "key, text, finish, logprob, used, mark"


class SqliteStore:
    """Answers in the SQLite file ``path``, which is made when the first answer comes.

    Holds digests of questions and values, never themselves, and the answers; only the file's owner
    may read it. Every ``store_many`` is one transaction. Beyond ``limit_mb`` megabytes the least
    recently used fifth is dropped (more, if that frees too little). The time of a use is written
    once a day, so that look-ups seldom write.

    A damaged file is renamed to ``<name>.corrupt-<time>``, and a new one is created. A file that
    cannot be read or written (no rights, a full disk, a file of another program) is left alone, and
    answers stay in memory; so do those that meet a lock for longer than ``wait_seconds``, until it
    is free. A read-only file is read. Each case gives one CacheWarning."""

    outlives_process = True

    def __init__(
        self,
        path: Path | str,
        *,
        limit_mb: int = 1024,
        wait_seconds: float = 30.0,
        clock: Callable[[], float] = time.time,
        is_durable: bool = True,
    ) -> None:
        self.path = Path(path).expanduser()
        self.limit_mb = limit_mb
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._is_durable = is_durable
        self._lock = threading.Lock()
        self._open: list[sqlite3.Connection] = []
        self._place = self.path
        """Where the open file was."""
        self._identity: tuple[int, int] | None = None
        self._beside = MemoryStore()
        """Answers that could not be written."""
        self._readable = self._writable = True
        self._owed: list[Row] = []
        """Rows that met a lock, and are to be written once it is free."""
        self._locked_at: float | None = None
        """When the file was found locked the last time; None: it was free."""
        self._warned = False
        weakref.finalize(self, _close_all, self._open)
        watch(self)

    @property
    def _limit(self) -> int:
        return self.limit_mb * MEGABYTE

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """A store of the same file, for another process of this machine."""
        made = partial(SqliteStore, limit_mb=self.limit_mb, is_durable=self._is_durable)
        return made, (str(self.path.absolute()),)

    # --- the protocol ----------------------------------------------------------------------------

    def get_many(
        self, fingerprint: str, task: Task, values: Sequence[Values]
    ) -> dict[Values, Answer]:
        found = self._beside.get_many(fingerprint, task, values)
        if not values or not self._exists():
            return found
        wanted = Keys(fingerprint, task).of_each(values)

        nothing: dict[Values, Answer] = {}
        return self._on_file(partial(self._looked_up, wanted=wanted), nothing) | found

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        keys, now = Keys(fingerprint, task), int(self._clock())
        entries = (row_of(Entry(keys.of(v), a, now)) for v, a in answers.items())
        rows = [row for row in entries if row is not None]
        stored: _Insertion | None = None
        try:
            stored = self._insert(rows)
        finally:
            if stored is None:
                self._beside.store_many(fingerprint, task, answers)
                self._owe(rows)
        if stored is not None:
            self._write_owed()

    def earlier(self, fingerprint: str, task: Task, most: int) -> list[str]:
        prefix = Keys(fingerprint, task).prefix

        def some(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(
                "SELECT text FROM answers WHERE key >= ? AND key < ? AND text IS NOT NULL LIMIT ?",
                (prefix, after(prefix), most),
            )
            return [text for (text,) in rows]

        nothing: list[str] = []
        stored = self._on_file(some, nothing) if self._exists() else nothing
        return (stored + self._beside.earlier(fingerprint, task, most))[:most]

    def clear(self, fingerprint: str | None = None) -> None:
        self._beside.clear(fingerprint)
        with self._lock:
            self._owed = []
        if not self._exists():
            return

        def forget(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                if fingerprint is None:
                    connection.execute("DELETE FROM answers")
                else:
                    first = model_prefix(fingerprint)
                    last = after(first)
                    connection.execute(
                        "DELETE FROM answers WHERE key >= ? AND key < ?", (first, last)
                    )
            # So that nothing of them is left in the file; somebody who reads it now may forbid it.
            with or_not():
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        self._on_file(forget, None, writes=True)

    def stats(self) -> StoreStats:
        def count(connection: sqlite3.Connection) -> StoreStats:
            entries, models, oldest, newest = connection.execute(
                f"SELECT count(*), count(DISTINCT substr(key, 1, {MODEL_BYTES})), "
                "min(used), max(used) FROM answers"
            ).fetchone()
            if not all(time is None or type(time) is int for time in (oldest, newest)):
                raise DamagedStore("an answer is not as it was written")
            size = _used_bytes(connection)
            return StoreStats(entries, models, size, self._limit, oldest, newest)

        nothing = StoreStats(0, 0, 0, self._limit)
        return self._on_file(count, nothing) if self._exists() else nothing

    def prepare(self) -> None:
        """Make the file, before other processes meet in doing so."""
        self._on_file(lambda connection: None, None)

    def close(self) -> None:
        if self._owed:
            self._locked_at = -math.inf  # one more try
            self._write_owed()
        with self._lock:
            _close_all(self._open)

    # --- copies ----------------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """Every stored answer, ordered by its key. Entries that come meanwhile may be among
        them."""
        last, nothing = b"", list[Entry]()
        while self._exists():
            page = self._on_file(partial(self._page, last=last), nothing)
            if not page:
                return
            yield from page
            last = page[-1].key

    def add(self, entries: Iterable[Entry]) -> int:
        """Keep ``entries`` under their keys, and tell how many are new; stored ones stay as they
        are.

        Raises OSError where the file cannot be written.
        """
        new = 0
        waiting = iter(entries)
        while some := list(islice(waiting, _ROWS_OF_A_TRANSACTION)):
            inserted = self._insert([row for row in map(row_of, some) if row is not None])
            if inserted is None:
                raise OSError(f"{self.path} cannot be written")
            new += inserted.new
        return new

    # --- in the file -----------------------------------------------------------------------------

    def _looked_up(
        self, connection: sqlite3.Connection, wanted: Mapping[bytes, Values]
    ) -> dict[Values, Answer]:
        found: dict[Values, Answer] = {}
        stale: list[bytes] = []
        fresh = int(self._clock()) - REFRESHED_AFTER_SECONDS
        with closing(_among(connection, wanted)) as rows:
            for key, answer, used in check_rows(rows):
                found[wanted[key]] = answer
                if used < fresh:
                    stale.append(key)
        if stale and self._writable:
            self._refresh(connection, stale)
        return found

    def _refresh(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> None:
        """Note that the entries were used now, unless somebody else is writing."""
        now = int(self._clock())
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            with or_not():
                for rows in pieces(keys, _ROWS_OF_A_TRANSACTION):
                    with transaction(connection):
                        connection.executemany(
                            "UPDATE answers SET used = ? WHERE key = ?", [(now, k) for k in rows]
                        )
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")

    def _insert(self, rows: Sequence[Row]) -> _Insertion | None:
        """None if the file does not take them."""

        def insert(connection: sqlite3.Connection) -> _Insertion:
            with transaction(connection):
                before = connection.total_changes
                # Of two answers to one key the first stays: later runs get what the first one saw.
                # In the order of the keys: a page that is not in SQLite's memory is read once.
                connection.executemany(
                    "INSERT OR IGNORE INTO answers VALUES (?,?,?,?,?,?)",
                    sorted(rows, key=itemgetter(0)),
                )
                new = connection.total_changes - before
            if _used_bytes(connection) > self._limit:
                with or_not():
                    self._make_room(connection)
            return _Insertion(new)

        return self._on_file(insert, None, writes=True)

    def _make_room(self, connection: sqlite3.Connection) -> None:
        """Drop the entries that were not used for longest."""
        while (size := _used_bytes(connection)) > _FULL * self._limit:
            hours = connection.execute(
                f"SELECT used / {_HOUR}, count(*) FROM answers GROUP BY 1 ORDER BY 1"
            ).fetchall()
            entries = sum(count for _, count in hours)
            drop = math.ceil(entries * max(0.05, 1 - _KEPT * self._limit / size))
            if not entries:
                return
            until, reached = 0, 0
            for hour, count in hours:
                until, reached = (hour + 1) * _HOUR, reached + count
                if reached >= drop:
                    break
            self._drop(connection, until, drop)

    def _drop(self, connection: sqlite3.Connection, until: int, most: int) -> None:
        """Delete at most ``most`` entries that were last used before ``until``. The transactions
        are short, so that others can write between them."""
        last = b""
        while most > 0:
            keys = connection.execute(
                "SELECT key FROM answers WHERE key > ? AND used < ? ORDER BY key LIMIT ?",
                (last, until, min(most, _ROWS_OF_A_TRANSACTION)),
            ).fetchall()
            if not keys:
                return
            with transaction(connection):
                connection.executemany("DELETE FROM answers WHERE key = ?", keys)
            last = keys[-1][0]
            most -= len(keys)

    def _page(self, connection: sqlite3.Connection, last: bytes) -> list[Entry]:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM answers WHERE key > ? ORDER BY key LIMIT ?",
            (last, _ROWS_OF_A_TRANSACTION),
        )
        return [Entry(*row) for row in check_rows(rows)]

    # --- the file itself -------------------------------------------------------------------------

    def _exists(self) -> bool:
        """Whether there is a file to read: reading makes none."""
        try:
            return self._readable and (bool(self._open) or self.path.exists())
        except OSError:  # a folder that may not be entered: opening the file tells of it
            return True

    def _on_file(
        self, operation: Callable[[sqlite3.Connection], T], otherwise: T, *, writes: bool = False
    ) -> T:
        """The result of ``operation``; ``otherwise`` if the file cannot be used."""
        warnings_due: list[str] = []
        try:
            with self._lock:
                return self._attempt(operation, otherwise, writes, warnings_due)
        finally:
            for text in warnings_due:  # last, as a warning may be made an error
                cache_trouble(text)
                warnings.warn(text, CacheWarning, stacklevel=2)

    def _attempt(
        self,
        operation: Callable[[sqlite3.Connection], T],
        otherwise: T,
        writes: bool,
        warnings_due: list[str],
    ) -> T:
        if not (self._readable and (self._writable or not writes)):
            return otherwise
        hurried = is_interrupted()
        needs_lock = writes or not self._open
        if needs_lock and self._was_locked_just_now and not hurried:
            return otherwise
        wait_seconds = self._wait_seconds
        if hurried or (needs_lock and self._locked_at is not None):
            wait_seconds = min(_HURRIED_SECONDS, wait_seconds)
        for first in (True, False):
            try:
                found = patiently(self._connection(wait_seconds), operation, wait_seconds)
                if writes:
                    self._locked_at = None
                return found
            except (sqlite3.Error, OSError, DamagedStore, ForeignFileError) as problem:
                if is_busy(problem):
                    if not hurried:
                        warnings_due += self._found_locked(problem)
                    return otherwise
                if first and is_damage(problem):
                    try:
                        warnings_due += self._replace_file(problem)
                        continue
                    except OSError as hindrance:
                        problem = hindrance
                self._writable = False
                if not writes or not self._open or isinstance(problem, ForeignFileError):
                    self._readable = False
                    _close_all(self._open)
                use = "written" if self._open else "used"
                warnings_due.append(
                    f"the answer cache {self.path} cannot be {use}: {problem}. "
                    f"{'Stored answers are used; new ones' if self._open else 'New answers'} "
                    "are kept in memory only."
                )
                break
        return otherwise

    def _connection(self, wait_seconds: float) -> sqlite3.Connection:
        if self._open and self._is_elsewhere:
            # Not closed: SQLite would delete the log of another file by its name.
            INHERITED.extend(self._open)
            self._open.clear()
        if not self._open:
            self._identity = identity(self.path)
            self._open.append(open_file(self.path, wait_seconds, is_durable=self._is_durable))
            self._place, self._identity = self.path.absolute(), identity(self.path)
        return self._open[0]

    @property
    def _is_elsewhere(self) -> bool:
        """Whether the open file was removed or renamed: nobody else would find what it gets. No,
        if its folder is gone: whoever removed a folder of answers wants none there."""
        try:
            found = self._place.stat()
        except FileNotFoundError:
            return self._place.parent.is_dir()
        except NotADirectoryError:
            return False
        except OSError:  # a folder that may not be entered any more
            return False
        return (found.st_dev, found.st_ino) != self._identity

    @property
    def _was_locked_just_now(self) -> bool:
        at = self._locked_at
        return at is not None and time.monotonic() - at < _LOCKED_SECONDS

    def _found_locked(self, problem: Exception) -> list[str]:
        """Note that somebody holds the lock; the warning, the first time."""
        self._locked_at = time.monotonic()
        warned, self._warned = self._warned, True
        return [] if warned else [f"the answer cache {self.path}: {problem}. {_UNTIL_FREE}"]

    def _owe(self, rows: Sequence[Row]) -> None:
        """Keep rows that met a lock."""
        with self._lock:
            if self._readable and self._writable:
                self._owed += rows

    def _write_owed(self) -> None:
        """Write what met a lock before, if it is free by now."""
        with self._lock:
            owed, self._owed = self._owed, []
        if owed and self._insert(owed) is None:
            self._owe(owed)

    def _replace_file(self, problem: Exception) -> list[str]:
        """Set the damaged file aside, unless another process did; what there is to say of it."""
        _close_all(self._open)
        if self._identity is None or identity(self.path) != self._identity:
            return []
        aside = set_aside(self.path)
        return [
            f"the answer cache {self.path} is damaged ({problem}). It was renamed to "
            f"{aside.name}, and a new one is begun; delete the old one at will."
        ]

    def after_fork(self) -> None:
        """In a new process: SQLite's connections must not be used, nor closed, in a child."""
        self._lock = threading.Lock()
        INHERITED.extend(self._open)
        self._open.clear()


@dataclass(frozen=True, slots=True)
class _Insertion:
    new: int


def _among(
    connection: sqlite3.Connection, wanted: Mapping[bytes, Values]
) -> Generator[Row, None, None]:
    """The stored rows of these keys: by a scan from the first to the last, where most of what lies
    between them is wanted (a query that runs again), else key by key."""
    if len(wanted) > _AT_ONCE:
        between = "FROM answers WHERE key BETWEEN ? AND ?"
        ends, most = (min(wanted), max(wanted)), int(_SCANNED * len(wanted))
        counted = f"SELECT count(*) FROM (SELECT 1 {between} LIMIT {most + 1})"
        if connection.execute(counted, ends).fetchone()[0] <= most:
            for row in connection.execute(f"SELECT {_COLUMNS} {between}", ends):
                if row[0] in wanted:
                    yield row
            return
    for keys in pieces(sorted(wanted), _AT_ONCE):  # in order: a page is read once
        marks = ",".join("?" * len(keys))
        yield from connection.execute(
            f"SELECT {_COLUMNS} FROM answers WHERE key IN ({marks})", keys
        )


def _used_bytes(connection: sqlite3.Connection) -> int:
    """The size of the pages in use: the file may hold free ones, which come next."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()
