"""Opens the file of stored answers, creates a missing one, and sets a damaged one aside."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from blendfusion.models.protocol.forks import watch
from blendfusion.models.stores.entry import DamagedStore

T = TypeVar("T")

SCHEMA_VERSION = 1
"""The version of the tables. A file of another version is left as it is, and not used."""
APPLICATION_ID = 0x42464143
"""SQLite's application_id of a file of answers."""

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY,
    text TEXT,
    finish TEXT NOT NULL,
    logprob REAL,
    used INTEGER NOT NULL,
    mark INTEGER NOT NULL
) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
_SETTINGS = """
PRAGMA synchronous = {};
PRAGMA journal_mode = WAL;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16000;
PRAGMA journal_size_limit = 16000000;
"""
_COMPANIONS = ("-wal", "-shm", "-journal")
_PAUSE_SECONDS = 0.02
BUSY_SECONDS = 0.05
"""How long SQLite itself waits for a lock."""
_DAMAGE = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_FORBIDDEN = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_SUFFIXES = ("", ".sqlite", ".sqlite3", ".db")
"""A file of another name that is no database is no damaged file of answers: ``--cache t.csv``."""
_MAX_NAMES = 1000


class _Creation:
    """The lock of whoever creates a file."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        watch(self)

    def after_fork(self) -> None:
        """Begin anew: another thread of the parent may have held the lock."""
        self.lock = threading.Lock()


_creation = _Creation()


class OwnConnection(sqlite3.Connection):
    """A connection that ends with the object that has it. Python 3.13 and later warn of others that
    nobody has closed."""

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


class ForeignFileError(Exception):
    """A file that may be of use to somebody else."""


def open_file(path: Path, wait_seconds: float, *, is_durable: bool = True) -> sqlite3.Connection:
    """A connection to the file, which is made if it is not there (only its owner may read it).
    ``is_durable``: what is written outlives a crash of the system.

    Where nothing may be written (the file system, the folder), the file is read as it is, without
    what a log beside it has. Waits for other processes for at most ``wait_seconds``. Raises
    sqlite3.Error, OSError, Damaged or ForeignFileError."""
    create_private(path)
    try:
        settle = partial(_settle, synchronous="NORMAL" if is_durable else "OFF")
        return _connect(path.absolute().as_uri(), wait_seconds, settle)
    except sqlite3.DatabaseError as problem:
        if _code(problem) == sqlite3.SQLITE_NOTADB and path.suffix.lower() not in _SUFFIXES:
            raise ForeignFileError("the file is not a SQLite database") from problem
        if _code(problem) not in _FORBIDDEN:
            raise
    # SQLite reads a file with a log only where it may write beside it, or is told that nobody does.
    return _connect(f"{path.absolute().as_uri()}?immutable=1", wait_seconds, _recognise)


def _connect(
    uri: str, wait_seconds: float, prepare: Callable[[sqlite3.Connection], object]
) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=OwnConnection,
    )
    try:
        patiently(connection, prepare, wait_seconds)
    except BaseException:
        connection.close()
        raise
    return connection


def create_private(path: Path) -> None:
    """Create the file, for its owner alone, if it is not there. While a descriptor of it is open
    here, nobody in this process may open it: POSIX gives back all locks of a process on a file,
    SQLite's too, when any descriptor of it is closed."""
    with _creation.lock:
        if path.exists():
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def patiently(
    connection: sqlite3.Connection,
    operation: Callable[[sqlite3.Connection], T],
    wait_seconds: float,
) -> T:
    """The result of ``operation``, tried again as long as another process holds the lock. SQLite's
    own waiting hears no signal, and does not wait for a process that makes the file."""
    deadline = time.monotonic() + wait_seconds
    while True:
        if connection.in_transaction:  # an interrupt may have come anywhere
            connection.execute("ROLLBACK")
        try:
            return operation(connection)
        except sqlite3.OperationalError as problem:
            if not is_busy(problem) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)


def is_busy(problem: Exception) -> bool:
    """Whether another process holds the lock."""
    return isinstance(problem, sqlite3.Error) and _code(problem) == sqlite3.SQLITE_BUSY


def _settle(connection: sqlite3.Connection, synchronous: str) -> None:
    """Prepare for use, with tables in a new file. Raises ForeignFileError."""
    empty = _recognise(connection)
    connection.executescript(_SETTINGS.format(synchronous))
    if empty:
        connection.executescript(_SCHEMA)


def _recognise(connection: sqlite3.Connection) -> bool:
    """Whether the file is new. Raises ForeignFileError for that of somebody else."""
    connection.execute("BEGIN")  # both are read of one state: another process may be making it
    try:
        application = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        empty = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if application == 0 and empty:
        return True
    if application != APPLICATION_ID:
        raise ForeignFileError("it is a database of something else")
    if version != SCHEMA_VERSION:
        raise ForeignFileError(
            f"it was written by another version of BlendFusion (schema {version})"
        )
    return False


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    with closing(connection.execute(f"PRAGMA {name}")) as rows:
        return int(rows.fetchone()[0])


def _code(problem: sqlite3.Error) -> int | None:
    """The primary result code of SQLite; None if the error is not SQLite's own."""
    code: int | None = getattr(problem, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_damage(problem: Exception) -> bool:
    """Whether the content of the file is the problem, and not the disk, a right or another
    process."""
    if isinstance(problem, sqlite3.Error):
        # Without a code: bytes that are no text, or a row that is not as it was made.
        return _code(problem) is None or _code(problem) in _DAMAGE or _is_short(problem)
    return isinstance(problem, DamagedStore)


def _is_short(problem: sqlite3.Error) -> bool:
    return getattr(problem, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHORT_READ


def identity(path: Path) -> tuple[int, int] | None:
    """The identity of this file, by which another file under the same name differs; None if there
    is no file."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


def set_aside(path: Path) -> Path:
    """Rename the file and what SQLite keeps beside it; the new name. Raises OSError."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    names = [f"{path.name}.corrupt-{stamp}{n}" for n in ("", *(f"-{i}" for i in range(_MAX_NAMES)))]
    aside = next(p for name in names if not (p := path.with_name(name)).exists())
    # A new file must not meet the log of the old one, so that goes first.
    for companion in _COMPANIONS:
        beside = path.with_name(path.name + companion)
        if beside.exists():
            beside.rename(aside.with_name(aside.name + companion))
    path.rename(aside)
    return aside


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. Waits for other writers at its beginning, and only there."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_interrupted() -> bool:
    """Whether a signal is ending the program, so that nothing may wait."""
    problem = sys.exc_info()[1]
    return problem is not None and not isinstance(problem, (Exception, GeneratorExit))


@contextmanager
def or_not() -> Iterator[None]:
    """Ignores that a file is locked or the disk full inside the block, whose work is optional."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        if is_damage(problem):
            raise
