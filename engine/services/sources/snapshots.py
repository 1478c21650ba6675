"""One state of each database for all scans of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import pyarrow as pa


class Reading(Protocol):
    """One state of a database. Its methods may be called on several threads at a time."""

    @property
    def keeps_writers_out(self) -> bool:
        """Whether nobody can write until it is closed."""
        ...

    def batches(self, query: str, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a query, as ``Database.batches`` has them."""
        ...

    def close(self) -> None:
        """End it; no scan reads any more."""
        ...


@dataclass(slots=True)
class _Scans:
    """The scans of one database."""

    coming: int = 0
    active: int = 0
    reading: Reading | None = None


class Snapshot:
    """The states of databases that one query reads. A state begins with the first scan, and ends
    with the last one behind ``close``; a state that keeps writers out ends as soon as no scan is
    known to come."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._scans: dict[int, _Scans] = {}
        self._is_closed = False

    def expect(self, database: object) -> None:
        """Hear of a scan that will come."""
        with self._lock:
            self._scans.setdefault(id(database), _Scans()).coming += 1

    def enter(self, database: Snapshots) -> Reading:
        """The state of a database for a scan, which calls ``leave`` at its end."""
        with self._lock:
            scans = self._scans.setdefault(id(database), _Scans())
            if scans.reading is None:
                scans.reading = database.begin_reading(scans=max(scans.coming, 1))
            scans.coming -= 1
            scans.active += 1
            return scans.reading

    def leave(self, database: Snapshots) -> None:
        """A scan of a database has ended."""
        with self._lock:
            self._scans[id(database)].active -= 1
        self._end()

    def close(self) -> None:
        """No more scans will come."""
        self._is_closed = True
        self._end()

    def _end(self) -> None:
        ended: list[Reading] = []
        with self._lock:
            is_last = self._is_closed and not any(scans.active for scans in self._scans.values())
            for scans in self._scans.values():
                reading, is_idle = scans.reading, scans.active == 0 and scans.coming <= 0
                if reading is not None and (is_last or (is_idle and reading.keeps_writers_out)):
                    ended.append(reading)
                    scans.reading = None
        for reading in ended:
            reading.close()


class Snapshots(ABC):
    """The half of a database that reads: each query in a state."""

    @abstractmethod
    def begin_reading(self, *, scans: int) -> Reading:
        """A state that stays the same, for about ``scans`` scans at a time."""

    def batches(
        self, query: str, schema: pa.Schema, rows: int, snapshot: Snapshot | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a query, in batches of about ``rows`` rows and of this schema, in a
        snapshot or a state of their own."""
        own = snapshot or Snapshot()
        reading = own.enter(self)
        try:
            if snapshot is None:
                own.close()
            yield from reading.batches(query, schema, rows)
        finally:
            own.leave(self)
