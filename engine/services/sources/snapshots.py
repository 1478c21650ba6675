"""One state of each database for all scans of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from threading import Lock
from typing import Protocol

import pyarrow as pa


class Reading(Protocol):
    """One state of a database. Its methods may be called on several threads at a time."""

    def batches(self, query: str, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a query, as ``Database.batches`` has them."""
        ...

    def close(self) -> None:
        """End it; no scan reads any more."""
        ...


class Snapshot:
    """The states of databases that one query reads. A state begins with the first scan, and ends
    with the last one behind ``close``."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._readings: dict[int, Reading] = {}
        self._expected: dict[int, int] = {}
        self._active = 0
        self._is_closed = False

    def expect(self, database: object) -> None:
        """Hear of a scan that will come."""
        with self._lock:
            self._expected[id(database)] = self._expected.get(id(database), 0) + 1

    def enter(self, database: Snapshots) -> Reading:
        """The state of a database for a scan, which calls ``leave`` at its end."""
        with self._lock:
            found = self._readings.get(id(database))
            if found is None:
                scans = self._expected.get(id(database), 1)
                found = self._readings[id(database)] = database.begin_reading(scans=scans)
            self._active += 1
            return found

    def leave(self) -> None:
        """A scan has ended."""
        with self._lock:
            self._active -= 1
        self._end()

    def close(self) -> None:
        """No more scans will come."""
        self._is_closed = True
        self._end()

    def _end(self) -> None:
        with self._lock:
            if self._active or not self._is_closed:
                return
            ended, self._readings = list(self._readings.values()), {}
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
            own.leave()
