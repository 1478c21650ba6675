"""The process of a worker on this machine, and the one that starts such processes by forking."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from multiprocessing.connection import Client, Connection

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
            _work(address, key, number)
        elif os.fork() == 0:
            _work(address, key, number)
            os._exit(0)


def _work(address: str, key: bytes, number: int) -> None:
    threads = []
    for lane in LANES:
        connection = Client(address, authkey=key)
        connection.send((number, lane, os.getpid()))
        threads.append(threading.Thread(target=_serve, args=(connection,)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def _serve(connection: Connection) -> None:
    worker = Worker()
    while True:
        try:
            message = connection.recv_bytes()
            connection.send_bytes(worker.call(message))
        except (EOFError, OSError):  # the session is gone
            os._exit(0)
