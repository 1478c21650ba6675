"""The process of a worker on this machine."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener

from blendfusion.services.cluster.processes import LocalPlace, gone_error
from blendfusion.services.cluster.protocol import LANES
from blendfusion.services.cluster.starter import Pulse
from blendfusion.services.cluster.worker import Worker

_LEAVE_SECONDS = 1.0


class WorkerProcess:
    """A worker's process, which serves the session and other workers. ``starter`` has forked it."""

    def __init__(self, address: str, key: bytes, starter: int | None = None) -> None:
        self._address, self._key, self._own = address, key, os.getpid()
        self._starter = starter
        self._listener = Listener(self._address_of(self._own), None, 128, key)

    def work(self, number: int) -> None:
        """Serve the session until it is gone."""
        with Pulse(self._address, self._key, number).beating(self._leave):
            threading.Thread(target=self._listen, daemon=True).start()
            threads = []
            for lane in LANES:
                connection = Client(self._address, authkey=self._key)
                connection.send((number, lane, self._own))
                threads.append(threading.Thread(target=self._serve_session, args=(connection,)))
                threads[-1].start()
            for thread in threads:
                thread.join()

    def _listen(self) -> None:
        """Take the connections of other workers."""
        while True:
            with suppress(OSError, EOFError, AuthenticationError):
                connection = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve_session(self, connection: Connection) -> None:
        self._serve(connection)
        self._leave()

    def _leave(self) -> None:
        """The session is gone. The starter finds out, too, and ends its workers; one that stands
        still is ended here."""
        until = time.monotonic() + _LEAVE_SECONDS
        while self._starter is not None and os.getppid() == self._starter:
            if time.monotonic() > until:
                os.kill(self._starter, signal.SIGKILL)
            time.sleep(_LEAVE_SECONDS / 100)
        os._exit(0)

    def _serve(self, connection: Connection) -> None:
        worker = Worker(self._connect, str(self._own))
        with suppress(EOFError, OSError):
            while True:
                message = connection.recv_bytes()
                connection.send_bytes(worker.call(message))

    def _connect(self, address: str) -> LocalPlace:
        """A place in the worker's process with this number."""
        try:
            connection = Client(self._address_of(address), authkey=self._key)
        except (OSError, EOFError, AuthenticationError) as problem:
            raise gone_error(address) from problem
        return LocalPlace(connection, int(address))

    def _address_of(self, process: object) -> str:
        return f"{self._address}-{process}"
