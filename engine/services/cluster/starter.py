"""The process that starts the workers of a machine, by forking once it has imported BlendFusion."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Client, Connection

from blendfusion.services.cluster.processes import PULSE, READY, STARTER
from blendfusion.services.cluster.protocol import BEAT_SECONDS


def main() -> None:
    """Start the workers whose numbers arrive on standard input, a line each, until it ends. Then
    end them."""
    address = sys.argv[1]
    lines = os.fdopen(os.dup(0), "rb", 0)
    key_text, sys.path[:] = json.loads(lines.readline())
    key = bytes.fromhex(key_text)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session tells when to stop
    pulse = Pulse(address, key, STARTER)
    with pulse.beating(lambda: os._exit(0)):
        from blendfusion.services.cluster.local_worker import WorkerProcess
    if not hasattr(os, "fork"):
        for line in lines:
            WorkerProcess(address, key).work(int(line))
        return
    own = os.getpid()
    pulse.beat(READY)
    children: list[int] = []
    for number in _numbers(pulse):
        process = os.fork()
        if not process:
            pulse.close()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            WorkerProcess(address, key, own).work(number)
            os._exit(0)
        children = [child for child in children if not _has_ended(child)] + [process]
    for child in children:  # one that stands still does not find out by itself
        if not _has_ended(child):
            os.kill(child, signal.SIGKILL)
    os._exit(0)


class Pulse:
    """Tells the session that a process is alive."""

    def __init__(self, address: str, key: bytes, number: int) -> None:
        self._line: Connection = Client(address, authkey=key)
        self._line.send((number, PULSE, os.getpid()))

    def beat(self, sign: bytes = b".") -> None:
        """Raises OSError where the session is gone."""
        self._line.send_bytes(sign)

    @contextmanager
    def beating(self, on_end: Callable[[], None]) -> Iterator[None]:
        """Beat in a thread, which has ended at the end of the block: then the process may fork.
        ``on_end`` is called there once the session is gone."""
        ended = threading.Event()
        thread = threading.Thread(target=self._beat_on, args=(ended, on_end), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def close(self) -> None:
        self._line.close()

    def _beat_on(self, ended: threading.Event, on_end: Callable[[], None]) -> None:
        try:
            while not ended.wait(BEAT_SECONDS):
                self.beat()
        except OSError:
            on_end()


def _numbers(pulse: Pulse) -> Iterator[int]:
    """The numbers that arrive on standard input; a beat of the pulse at least every so often."""
    waiting = b""
    while True:
        with suppress(OSError):
            pulse.beat()
        if not select.select([0], [], [], BEAT_SECONDS)[0]:
            continue
        some = os.read(0, 4096)
        if not some:
            return
        *complete, waiting = (waiting + some).split(b"\n")
        yield from map(int, complete)


def _has_ended(child: int) -> bool:
    with suppress(ChildProcessError):
        return os.waitpid(child, os.WNOHANG)[0] == child
    return True
