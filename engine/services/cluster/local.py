"""Workers as processes of this machine."""

from __future__ import annotations

import threading
import weakref
from contextlib import AbstractContextManager, nullcontext

from blendfusion.services.cluster.processes import LocalPlace, Processes
from blendfusion.services.cluster.protocol import Place, PlaceGone


class LocalWorkers:
    """Starts processes on this machine: one imports BlendFusion, and forks the workers."""

    one_machine = True

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._used: dict[tuple[int, str], int] = {}
        self._started: Processes | None = None

    @property
    def processes(self) -> dict[int, int]:
        """The processes of the workers that were started, by number."""
        return {worker: process for (worker, _), process in self._used.items()}

    @property
    def starter(self) -> int | None:
        """The process that starts workers; None before the first query."""
        return None if self._started is None else self._started.starter

    def open(self, worker: int, lane: str) -> LocalPlace:
        with self._lock:
            if self._started is None:
                self._started = Processes()
                weakref.finalize(self, self._started.close)
            place = self._started.take(worker, lane)
            if place is None:
                self._started.start(worker)
                place = self._started.take(worker, lane)
            if place is None:
                raise PlaceGone("a worker's process is gone again")
            self._used[worker, lane] = place.process
            return place

    def give_back(self, worker: int, lane: str, place: Place) -> None:
        assert isinstance(place, LocalPlace)
        if self._started is None:
            place.close()
        else:
            self._started.give_back(worker, lane, place)

    def ending(self) -> AbstractContextManager[None]:
        return nullcontext() if self._started is None else self._started.endings.ending()

    def close(self) -> None:
        with self._lock:
            if self._started is not None:
                self._started.close()
            self._started = None
