"""Workers as processes of this machine."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from shutil import rmtree

from blendfusion.cluster.protocol import LANES, Place, PlaceGone

_START_SECONDS = 120.0
_CODE = "from blendfusion.cluster.local_worker import main; main()"


class LocalPlace:
    """A connection to a thread of a worker's process."""

    def __init__(self, connection: Connection, process: int) -> None:
        self._connection = connection
        self.process = process

    @property
    def address(self) -> str:
        return str(self.process)

    @property
    def ended(self) -> bool:
        """Whether the process is gone, as long as no reply is awaited."""
        try:
            return self._connection.poll()
        except OSError:
            return True

    def call(self, message: bytes) -> bytes:
        try:
            self._connection.send_bytes(message)
            return self._connection.recv_bytes()
        except (EOFError, OSError) as problem:
            raise gone(self.process) from problem

    def close(self) -> None:
        self._connection.close()


def gone(process: object) -> PlaceGone:
    """The error for a worker's process that has ended."""
    return PlaceGone(f"the worker's process {process} is gone")


class LocalWorkers:
    """Starts processes on this machine: one imports BlendFusion, and forks the workers."""

    one_machine = True

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._places: dict[tuple[int, str], LocalPlace] = {}
        self._used: dict[tuple[int, str], int] = {}
        self._parent: subprocess.Popen[str] | None = None
        self._listener: Listener | None = None

    @property
    def processes(self) -> dict[int, int]:
        """The processes of the workers that were started, by number."""
        return {worker: process for (worker, _), process in self._used.items()}

    def open(self, worker: int, lane: str) -> LocalPlace:
        with self._lock:
            waiting = self._places.get((worker, lane))
            if waiting is None or waiting.ended:
                self._end_rest(worker)
                self._start(worker)
            place = self._places.pop((worker, lane))
            self._used[worker, lane] = place.process
            return place

    def give_back(self, worker: int, lane: str, place: Place) -> None:
        assert isinstance(place, LocalPlace)
        with self._lock:
            self._places[worker, lane] = place

    def _end_rest(self, worker: int) -> None:
        """Close the places of a process that is gone."""
        for lane in LANES:
            place = self._places.pop((worker, lane), None)
            if place is not None:
                place.close()

    def _start(self, worker: int) -> None:
        """Start the process of a worker; its places wait in ``_places``."""
        if self._listener is None:
            self._begin()
        assert self._parent is not None
        assert self._parent.stdin is not None
        assert self._listener is not None
        try:
            self._parent.stdin.write(f"{worker}\n")
            self._parent.stdin.flush()
        except OSError as problem:
            raise PlaceGone("the process that starts workers is gone") from problem
        deadline = time.monotonic() + _START_SECONDS
        while missing := [lane for lane in LANES if (worker, lane) not in self._places]:
            if time.monotonic() > deadline:
                raise PlaceGone(f"a worker's process does not open its {missing[0]}")
            self._accept()

    def _accept(self) -> None:
        """Take the next connection. Raises PlaceGone where none comes, or from a process that is
        gone again."""
        assert self._listener is not None
        listener, found = self._listener, list[Connection]()

        def accept() -> None:
            with suppress(OSError, EOFError, AuthenticationError):
                found.append(listener.accept())

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while thread.is_alive() and time.monotonic() < deadline:
            thread.join(0.2)
            if self._parent is not None and self._parent.poll() is not None:
                break
        try:
            number, lane, process = found[0].recv()
        except (IndexError, EOFError, OSError) as problem:
            raise PlaceGone("a worker's process does not start") from problem
        if (number, lane) in self._places:  # of a process that is gone
            self._places[number, lane].close()
        self._places[number, lane] = LocalPlace(found[0], process)
        self._used[number, lane] = process

    def _begin(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="blendfusion-cluster-"))  # its user's alone
        key = secrets.token_bytes(32)
        unix = hasattr(os, "fork")
        self._listener = Listener(
            str(folder / "socket") if unix else None, None if unix else "AF_PIPE", 64, key
        )
        self._parent = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(self._listener.address)],
            stdin=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        assert self._parent.stdin is not None
        self._parent.stdin.write(json.dumps([key.hex(), sys.path]) + "\n")
        weakref.finalize(self, _end, self._parent, self._listener, folder)

    def close(self) -> None:
        with self._lock:
            for place in self._places.values():
                place.close()
            self._places.clear()
            if self._listener is not None and self._parent is not None:
                _end(self._parent, self._listener, None)
            self._listener = self._parent = None


def _end(parent: subprocess.Popen[str], listener: Listener, folder: Path | None) -> None:
    if parent.stdin is not None and not parent.stdin.closed:
        with suppress(OSError):
            parent.stdin.close()  # and it ends
    try:
        parent.wait(10)
    except subprocess.TimeoutExpired:
        parent.kill()
        parent.wait()
    listener.close()
    if folder is not None:
        rmtree(folder, ignore_errors=True)
