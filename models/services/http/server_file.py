"""A file that lists the servers of a model, and may change while they are asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from blendfusion.errors import ModelNotFound
from blendfusion.models.services.http.address import checked_url

_SECONDS = 1.0
"""How often the file is looked at."""
_HINT = "It has the URL of a server on each line, as http://HOST:8000/v1; # begins a comment."


class ServerFile:
    """The URLs in a file, one a line. Safe to use from threads.

    ``url``: ``file:///path``. Raises ModelNotFound for one without a path.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url.strip())
        if parts.scheme != "file" or parts.netloc not in ("", "localhost") or parts.path in "/":
            raise ModelNotFound(
                f"'{url}' is not the path of a file that lists servers",
                hint="Write file:///path/of/servers.txt.",
            )
        self.url = url.strip()
        self._path = Path(unquote(parts.path))
        self._clock = clock
        self._read_at = float("-inf")
        self._stamp: object = None
        self._urls: list[str] = []
        self._lock = threading.Lock()

    def urls(self) -> list[str]:
        """The URLs as they are by now, each once.

        Raises ModelNotFound if none was ever read; later, a file that is missing, empty or wrong
        changes nothing."""
        with self._lock:
            if self._clock() - self._read_at >= _SECONDS:
                self._read_at = self._clock()
                try:
                    self._read()
                except ModelNotFound:
                    if not self._urls:
                        self._read_at = float("-inf")
                        raise
            return self._urls

    def _read(self) -> None:
        try:
            status = self._path.stat()
            stamp = status.st_mtime_ns, status.st_size, status.st_ino
            if stamp == self._stamp:
                return
            lines = self._path.read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as problem:
            reason = getattr(problem, "strerror", None) or "it is no text in UTF-8"
            raise ModelNotFound(
                f"the servers in {self._path} cannot be read: {reason}", hint=_HINT
            ) from None
        found: dict[str, None] = {}
        for number, line in enumerate(lines, 1):
            text = line.partition("#")[0].strip()
            if text:
                found[self._check_url(text, number)] = None
        if not found:
            raise ModelNotFound(f"{self._path} names no server", hint=_HINT)
        self._urls, self._stamp = [*found], stamp

    def _check_url(self, text: str, number: int) -> str:
        try:
            checked_url(text)
        except ModelNotFound:  # which quotes the line, and the file may be any file
            raise ModelNotFound(
                f"line {number} of {self._path} is not the URL of a server", hint=_HINT
            ) from None
        return text
