"""A proxy before a server of TCP, which can be cut and slowed down, as networks are."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self


class Proxy:
    """Passes bytes on to ``port`` of this machine, each way after half of ``latency`` seconds.
    While it is ``down``, there are no connections."""

    def __init__(self, port: int, latency: float = 0.0) -> None:
        self._target, self._latency = port, latency
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.down = False
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections, and refuse new ones until ``mend``."""
        self.down = True
        self._end()

    def mend(self) -> None:
        self.down = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.down = True
        self._server.close()
        self._end()

    def _end(self) -> None:
        with self._lock:
            ends, self._open = self._open, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                if self.down:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
                with self._lock:
                    self._open += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                time.sleep(self._latency / 2)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
