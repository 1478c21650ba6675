"""The processes of a cluster on this machine. One that stands still is ended, and so is gone."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import AuthenticationError, connection
from multiprocessing.connection import Client, Connection, Listener
from shutil import rmtree

from blendfusion.places.private_folder import private_folder
from blendfusion.services.cluster import protocol
from blendfusion.services.cluster.grace import Endings
from blendfusion.services.cluster.protocol import BEAT_SECONDS, LANES, PlaceGone
from blendfusion.services.cluster.starvation import waited_seconds

PULSE = "pulse"
"""The lane on which a process only says that it is alive."""
READY = b"ready"
"""The message of the process that starts workers once it can."""
STARTER = -1
"""The number of the process that starts workers, in the place of a worker's."""
_START_SECONDS = 120.0
"""The time for the imports of the process that starts workers, on a busy machine."""
_FORK_SECONDS = 20.0
"""The time for a worker's process, once those are done."""
_TICK_SECONDS = 0.1
_LATE_SECONDS = 3 * BEAT_SECONDS
"""The silence from which on it matters why a process is silent."""
_END_SECONDS = 0.6
_CODE = "from blendfusion.services.cluster.starter import main; main()"
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class LocalPlace:
    """A connection to a thread of a worker's process."""

    def __init__(self, line: Connection, process: int) -> None:
        self._line = line
        self.process = process
        self.busy = False
        """Whether it owes a reply."""

    @property
    def address(self) -> str:
        return str(self.process)

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone, as long as no reply is awaited."""
        try:
            return self._line.poll()
        except OSError:
            return True

    def call(self, message: bytes) -> bytes:
        self.busy = True
        try:
            self._line.send_bytes(message)
            return self._line.recv_bytes()
        except (EOFError, OSError) as problem:
            raise gone_error(self.process) from problem
        finally:
            self.busy = False

    def close(self) -> None:
        self._line.close()


def gone_error(process: object) -> PlaceGone:
    """The error for a worker's process that has ended."""
    return PlaceGone(f"the worker's process {process} is gone")


class _Pulse:
    """The signs of life of a process."""

    def __init__(self, line: Connection, number: int) -> None:
        self.line, self.number = line, number
        self.silent_seconds = 0.0
        """The time without a pulse in which the process had a CPU."""
        self.ready = False
        self._waited_seconds: float | None = None

    def hear(self) -> None:
        """Read the pulses so far. Raises EOFError or OSError if the process has ended."""
        while self.line.poll():
            self.ready |= self.line.recv_bytes() == READY
            self.silent_seconds, self._waited_seconds = 0.0, None

    def count(self, passed_seconds: float, process: int) -> None:
        """Add ``passed_seconds`` without a pulse. The time in which ``process`` waited for a CPU
        does not count."""
        if self.silent_seconds > _LATE_SECONDS:
            now, before = waited_seconds(process), self._waited_seconds
            self._waited_seconds = now
            if before is not None:
                passed_seconds = max(0.0, passed_seconds - max(0.0, now - before))
        self.silent_seconds += passed_seconds


class Processes:
    """One process that imports BlendFusion, and the workers that it forks. They end with this one.

    A thread listens to their pulses. It ends those that are silent for ``STILL_SECONDS`` (stopped,
    frozen, swapped out): whoever waits for one, here or in another worker, then finds it gone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._places: dict[tuple[int, str], LocalPlace] = {}
        """The places that nobody has opened, by worker and lane."""
        self._opened: dict[tuple[int, str], LocalPlace] = {}
        self._pulses: dict[int, _Pulse] = {}
        self._closed = False
        self.endings = Endings()
        self._key = secrets.token_bytes(32)
        self._starter: subprocess.Popen[str] | None = None
        folder = private_folder(self, "blendfusion-cluster-")
        self._folder = folder
        address = str(folder / "socket") if hasattr(os, "fork") else None
        self._listener = Listener(address, None if address else "AF_PIPE", 64)
        for work in (self._listen, self._watch):
            threading.Thread(target=work, daemon=True).start()

    # --- for the session -------------------------------------------------------------------------

    @property
    def starter(self) -> int | None:
        """The process that starts workers."""
        return None if self._starter is None else self._starter.pid

    def take(self, worker: int, lane: str) -> LocalPlace | None:
        """The place that waits; None if there is none, or its process is gone."""
        with self._changed:
            place = self._places.pop((worker, lane), None)
            if place is None or place.has_ended:
                if place is not None:
                    place.close()
                return None
            self._opened[worker, lane] = place
            return place

    def give_back(self, worker: int, lane: str, place: LocalPlace) -> None:
        with self._changed:
            self._places[worker, lane] = place

    def start(self, worker: int) -> None:
        """Start the process of a worker. Raises PlaceGone where it does not start."""
        with self._changed:
            for lane in LANES:  # of a process that is gone
                place = self._places.pop((worker, lane), None)
                if place is not None:
                    place.close()
        self._order(worker)
        began, ready = time.monotonic(), None
        with self._changed:
            while missing := [lane for lane in LANES if (worker, lane) not in self._places]:
                self._changed.wait(_TICK_SECONDS)
                now = time.monotonic()
                if ready is None and any(pulse.ready for pulse in self._pulses.values()):
                    ready = now
                late = now - ready > _FORK_SECONDS if ready else now - began > _START_SECONDS
                if late or self._closed or self.endings.is_over or not self._starts:
                    raise PlaceGone(f"a worker's process does not open its {missing[0]}")

    def close(self) -> None:
        """End all processes. May be called twice."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            for place in self._places.values():
                place.close()
            self._places.clear()
            self._changed.notify_all()
        with suppress(OSError, EOFError):
            Client(self._listener.address).close()  # wakes the thread that listens
        starter = self._starter
        if starter is not None:
            _close_input(starter)  # and it ends, with its workers
            try:
                starter.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                for process in [*self._pulses]:
                    _kill(process)
                starter.kill()
                starter.wait()
        rmtree(self._folder, ignore_errors=True)

    # --- the process that starts workers ---------------------------------------------------------

    @property
    def _starts(self) -> bool:
        return self._starter is not None and self._starter.poll() is None

    def _order(self, worker: int) -> None:
        """Tell the process that starts workers, which is started if need be."""
        for _ in range(2):
            if not self._starts:
                self._begin()
            assert self._starter is not None
            assert self._starter.stdin is not None
            try:
                self._starter.stdin.write(f"{worker}\n")
                self._starter.stdin.flush()
            except OSError:
                self._starter.kill()
            else:
                return
        raise PlaceGone("the process that starts workers is gone")

    def _begin(self) -> None:
        if self._starter is not None:
            _close_input(self._starter)
            self._starter.wait()
        self._starter = subprocess.Popen(
            [sys.executable, "-c", _CODE, str(self._listener.address)],
            stdin=subprocess.PIPE,
            text=True,
            cwd=self._folder,
        )
        assert self._starter.stdin is not None
        self._starter.stdin.write(json.dumps([self._key.hex(), sys.path]) + "\n")

    # --- threads ---------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Take the connections of processes."""
        while not self._closed:
            try:
                line = self._listener.accept()
            except (OSError, EOFError):
                continue
            # In a thread: a process may stand still before it has said who it is.
            threading.Thread(target=self._greet, args=(line,), daemon=True).start()
        with suppress(FileNotFoundError):  # ``close`` may have removed the folder of its socket
            self._listener.close()

    def _greet(self, line: Connection) -> None:
        try:
            connection.deliver_challenge(line, self._key)
            connection.answer_challenge(line, self._key)
            number, lane, process = line.recv()
        except (OSError, EOFError, AuthenticationError):
            line.close()
            return
        with self._changed:
            if self._closed:
                line.close()
            elif lane == PULSE:
                self._pulses[process] = _Pulse(line, number)
            else:
                before = self._places.get((number, lane))
                if before is not None:  # of a process that is gone
                    before.close()
                self._places[number, lane] = LocalPlace(line, process)
            self._changed.notify_all()

    def _watch(self) -> None:
        """Listen to the pulses; end what stands still, or owes a reply at the end of a query."""
        while not self._closed:
            start = time.monotonic()
            pulses = {pulse.line: process for process, pulse in [*self._pulses.items()]}
            if not pulses:
                time.sleep(_TICK_SECONDS)
            for line in connection.wait([*pulses], _TICK_SECONDS) if pulses else ():
                assert isinstance(line, Connection)
                self._hear(pulses[line])
            # This process may have stood still itself: more than a few ticks are not counted.
            passed = min(time.monotonic() - start, 3 * _TICK_SECONDS)
            for process, pulse in [*self._pulses.items()]:
                pulse.count(passed, process)
                if pulse.silent_seconds > protocol.STILL_SECONDS:
                    _kill(process)
            if self.endings.is_over:
                for place in [*self._opened.values()]:
                    if place.busy and place.process in self._pulses:
                        _kill(place.process)
        for pulse in [*self._pulses.values()]:
            pulse.line.close()

    def _hear(self, process: int) -> None:
        pulse = self._pulses[process]
        try:
            pulse.hear()
        except (EOFError, OSError):
            with self._changed:
                del self._pulses[process]
            pulse.line.close()


def _close_input(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()


def _kill(process: int) -> None:
    with suppress(OSError):
        os.kill(process, _KILL)
