"""A lock of all processes of a machine on a folder, held while it is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from blendfusion.errors import QueryError

_SLICE_SECONDS = 0.2


@contextmanager
def write_lock(file: Path) -> Iterator[None]:
    """Hold the lock in ``file``; waits for another process or thread, and a killed one releases it.
    Raises QueryError where the file cannot be written."""
    # SQLite's lock on a file works on every platform, and ends with the process.
    lock = sqlite3.connect(file, timeout=_SLICE_SECONDS, isolation_level=None)
    try:
        while not _is_held(lock, file):  # in slices, so that the wait can be interrupted
            pass
        yield
    finally:
        with suppress(sqlite3.Error):
            lock.execute("ROLLBACK")
        lock.close()


def _is_held(lock: sqlite3.Connection, file: Path) -> bool:
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as problem:
        if problem.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise QueryError(f"cannot write in '{file.parent}': {problem}") from problem
        return False
    return True
