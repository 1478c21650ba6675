"""Rows that wait for a place that is slow or out of reach, in files of this machine: a process that
is killed leaves them to the next one that uses the place."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from blendfusion.models.protocol.python_packages import cache_folder
from blendfusion.models.stores.entry import DamagedStore, Row, check_rows

_MOST_BYTES = 64 << 20
"""The limit of one file: a place that is never written is not to fill the disk."""
_MOST_SECONDS = 30 * 86_400
"""How long rows that nobody could write are kept."""


class KeptRows:
    """The rows of one place. A file holds those of one store, and is deleted once its rows are
    written; what this machine does not let be written is not kept."""

    def __init__(self, place: str) -> None:
        self._begin = sha256(place.encode()).hexdigest()[:24]
        self._own: Path | None = None
        self._keys: set[bytes] = set()
        self._taken: dict[Path, int] = {}
        """The files of others whose rows this store has, with their sizes."""

    @property
    def is_empty(self) -> bool:
        """Whether no row is kept here; those of others may be."""
        return not self._keys

    def add(self, rows: Iterable[Row]) -> None:
        """Keep rows, each once."""
        new = [row for row in rows if row[0] not in self._keys]
        if not new:
            return
        with suppress(OSError, RuntimeError):
            if self._own is None:
                folder = cache_folder() / "unwritten"
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._own = folder / f"{self._begin}-{uuid4().hex}.jsonl"
            lines = (json.dumps([row[0].hex(), *row[1:]]) + "\n" for row in new)
            descriptor = os.open(self._own, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                if os.fstat(descriptor).st_size < _MOST_BYTES:
                    file.write("".join(lines))
            self._keys.update(row[0] for row in new)

    def take(self) -> list[Row]:
        """The rows that other processes have left, or wait to write themselves."""
        found: list[Row] = []
        with suppress(OSError, RuntimeError):
            for file in sorted((cache_folder() / "unwritten").glob(f"{self._begin}-*.jsonl")):
                with suppress(OSError):
                    if file.stat().st_mtime < time.time() - _MOST_SECONDS:
                        file.unlink()
                        continue
                    data = file.read_bytes()
                    self._taken[file] = len(data)
                    for line in data.split(b"\n"):
                        found += _whole_row(line)
        return found

    def clear(self) -> None:
        """Delete the files: their rows are written, or to be forgotten. One that has grown since it
        was read is left to the process that writes it."""
        with suppress(OSError):
            if self._own is not None:
                self._own.unlink()
        for file, size in self._taken.items():
            with suppress(OSError):
                if file.stat().st_size == size:
                    file.unlink()
        self._own, self._taken = None, {}
        self._keys.clear()


def _whole_row(line: bytes) -> list[Row]:
    """The row of a line; none where it is torn or damaged, as the last one of a killed process."""
    try:
        key, text, finish, logprob, used, mark = json.loads(line)
        row: Any = (bytes.fromhex(key), text, finish, logprob, used, mark)
        return [row for _ in check_rows([row])]
    except (ValueError, TypeError, OverflowError, RecursionError, DamagedStore):
        return []
