"""The process of a worker on this machine, and the one that starts such processes by forking."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener

from blendfusion.cluster.local import LocalPlace, gone
from blendfusion.cluster.protocol import LANES
from blendfusion.cluster.worker import Worker


def main() -> None:
    """Start the workers whose numbers arrive on standard input, a line each, until it ends."""
    address = sys.argv[1]
    key_text, sys.path[:] = json.loads(sys.stdin.readline())
    key = bytes.fromhex(key_text)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session tells when to stop
    forks = hasattr(os, "fork")
    if forks:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        number = int(line)
        if not forks:
            _Process(address, key).work(number)
        elif os.fork() == 0:
            _Process(address, key).work(number)
            os._exit(0)


class _Process:
    """A worker's process, which serves the session and other workers."""

    def __init__(self, address: str, key: bytes) -> None:
        self._address, self._key, self._own = address, key, os.getpid()
        self._listener = Listener(self._address_of(self._own), None, 128, key)

    def work(self, number: int) -> None:
        """Serve the session until it is gone."""
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
        os._exit(0)  # the session is gone

    def _serve(self, connection: Connection) -> None:
        worker = Worker(self._connected, str(self._own))
        with suppress(EOFError, OSError):
            while True:
                message = connection.recv_bytes()
                connection.send_bytes(worker.call(message))

    def _connected(self, address: str) -> LocalPlace:
        """A place in the worker's process with this number."""
        try:
            connection = Client(self._address_of(address), authkey=self._key)
        except (OSError, EOFError, AuthenticationError) as problem:
            raise gone(address) from problem
        return LocalPlace(connection, int(address))

    def _address_of(self, process: object) -> str:
        return f"{self._address}-{process}"
