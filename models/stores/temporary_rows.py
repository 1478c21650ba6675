"""Bytes by key in a file without a name: a private SQLite database."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

Row: TypeAlias = tuple[bytes, bytes]
"""A key and what is kept for it."""
PIECE = 4_096
"""Rows that are written in one transaction: its journal lies in memory."""
_KEYS_AT_ONCE = 500
"""Keys that one statement looks up."""
_SETTINGS = "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY;"
_TABLE = """
CREATE TABLE entries (place INTEGER PRIMARY KEY, holder INTEGER, key BLOB, data BLOB);
CREATE UNIQUE INDEX by_key ON entries (holder, key);
"""


class TemporaryRows:
    """Rows in a file in ``folder`` (None: the system's), each with a key and a holder.

    The file is deleted as soon as it is open (on Windows: when it is closed), so nobody else can
    open it. Not safe to use from two threads at once. Raises OSError or sqlite3.Error.
    """

    def __init__(self, folder: str | None) -> None:
        number, name = tempfile.mkstemp(prefix="blendfusion-", dir=folder)
        os.close(number)
        path = Path(name).absolute()
        # Nobody else opens the file; a folder on another machine may have no locks.
        self._file = sqlite3.connect(
            f"{path.as_uri()}?nolock=1", uri=True, isolation_level=None, check_same_thread=False
        )
        weakref.finalize(self, _discard, self._file, path)
        self._file.executescript(_SETTINGS + _TABLE)
        if os.name != "nt":
            path.unlink()

    @property
    def size(self) -> int:
        """The size of the file."""
        (pages,), (size,) = (
            self._file.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
        )
        return int(pages * size)

    def add(self, holder: int, rows: Sequence[Row]) -> None:
        """Keep all of these rows, or no row if one fails; of two rows with one key, keep the later
        one."""
        with self._file:
            self._file.execute("BEGIN")
            self._file.executemany(
                f"INSERT OR REPLACE INTO entries (holder, key, data) VALUES ({holder}, ?, ?)", rows
            )

    def find(self, holder: int, keys: Sequence[bytes]) -> Iterator[Row]:
        """The rows with these keys, in no order."""
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[start : start + _KEYS_AT_ONCE]
            marks = ", ".join("?" * len(some))
            yield from self._file.execute(
                f"SELECT key, data FROM entries WHERE holder = {holder} AND key IN ({marks})", some
            )

    def between(self, holder: int, first: bytes, last: bytes, most: int) -> list[bytes]:
        """At most ``most`` keys from ``first`` to ``last``."""
        found = self._file.execute(
            f"SELECT key FROM entries WHERE holder = {holder} AND key BETWEEN ? AND ? LIMIT {most}",
            (first, last),
        )
        return [key for (key,) in found]

    def pop(self, holder: int, most: int) -> list[Row]:
        """Remove the ``most`` oldest rows."""
        oldest = f"FROM entries NOT INDEXED WHERE holder = {holder} ORDER BY place LIMIT {most}"
        rows = self._file.execute(f"SELECT place, key, data {oldest}").fetchall()
        places = ((place,) for place, *_ in rows)
        with self._file:
            self._file.execute("BEGIN")
            self._file.executemany("DELETE FROM entries WHERE place = ?", places)
        return [(key, data) for _, key, data in rows]


def _discard(file: sqlite3.Connection, path: Path) -> None:
    file.close()
    if os.name == "nt":
        path.unlink(missing_ok=True)
