"""Reads files in a process of its own, which a hostile file may crash, fill or stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

_START = (
    "import sys, types\n"
    "package = types.ModuleType('blendfusion')\n"
    "package.__path__ = [sys.argv[1]]\n"
    "sys.modules['blendfusion'] = package\n"  # the worker needs nothing else of it
    "from blendfusion.services.documents.worker import main\n"
    "main(float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))\n"
)
_PATIENCE = 10
"""How many times its seconds of the processor a step may take on a busy machine, or wait."""
_GRACE_SECONDS = 5.0
"""How much longer the process, which stops itself, is waited for: it may stand still."""
_ENVIRONMENT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT"),
    *("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "OMP_NUM_THREADS"),
)
"""The variables that libraries need. A reader that a file takes over finds no key of a server."""

Row = tuple[str, str, "tuple[float, ...] | None"]
"""A block: kind, text and box."""


@dataclass(frozen=True, slots=True)
class PageRead:
    """The blocks of a page, or the reason why it, or with ``page`` None the file, has none."""

    page: int | None
    rows: list[Row]
    reason: str | None = None


class Reader:
    """A process that reads one file after another; a new one takes the place of one that died."""

    def __init__(self, seconds: float, megabytes: int, ocr: bool) -> None:
        self._seconds, self._megabytes, self._ocr = seconds, megabytes, ocr
        self._process: subprocess.Popen[str] | None = None
        self._watch: _Watch | None = None

    def read(
        self, path: str, wanted: Callable[[int], Collection[int] | None] | None
    ) -> Iterator[PageRead]:
        """The pages of a file, as far as they are pulled. ``wanted``: given the number of pages,
        those to read (None: all)."""
        process = self._running()
        try:
            self._send(process, {"path": path, "ocr": self._ocr, "asks": wanted is not None})
            while True:
                answer = self._answer(process)
                if "end" in answer:
                    return
                if "count" in answer:
                    assert wanted is not None
                    pages = wanted(int(answer["count"]))
                    self._send(process, None if pages is None else sorted(pages))
                    continue
                rows = [_row(row) for row in answer.get("blocks", ())]
                yield PageRead(answer.get("page"), rows, answer.get("reason"))
        except (EOFError, OSError, ValueError):
            yield PageRead(None, [], self._death(process))
        except GeneratorExit:  # nobody pulls the rest
            self.close()
            raise

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            package = str(Path(__file__).parents[2])
            waiting = self._seconds * _PATIENCE
            limits = map(str, (self._seconds, waiting, self._megabytes))
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, package, *limits],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            )
            self._watch = _Watch(waiting + _GRACE_SECONDS, self._process.kill)
        return self._process

    def _send(self, process: subprocess.Popen[str], message: object) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()

    def _answer(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout is not None
        assert self._watch is not None
        with self._watch:
            line = process.stdout.readline()
        if not line.endswith("\n"):
            raise EOFError
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError
        return answer

    def _death(self, process: subprocess.Popen[str]) -> str:
        """Why the process ended, in words."""
        self.close()
        code = process.returncode
        with suppress(ValueError):
            name = signal.Signals(-code).name if code < 0 else ""
            if name == "SIGPROF":
                return f"a part of it takes longer than {self._seconds:g} s"
            if name == "SIGALRM":
                return f"a part of it waits longer than {self._seconds * _PATIENCE:g} s"
            if name:
                return f"it crashes its reader ({name}), which has {self._megabytes:,} MB"
        return "it ends its reader"

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        assert self._watch is not None
        self._watch.close()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


class _Watch:
    """Calls a function once a block takes longer than ``seconds``; a thread for all blocks, since
    one for each would take longer than most pages."""

    def __init__(self, seconds: float, end: Callable[[], None]) -> None:
        self._seconds, self._end = seconds, end
        self._until = inf
        self._closed = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def __enter__(self) -> None:
        self._until = time.monotonic() + self._seconds

    def __exit__(self, *_: object) -> None:
        self._until = inf

    def _run(self) -> None:
        while not self._closed.wait(min(self._until - time.monotonic(), self._seconds)):
            if time.monotonic() >= self._until:
                self._end()
                return

    def close(self) -> None:
        """End the thread."""
        self._closed.set()


def _row(row: list[Any]) -> Row:
    kind, text, box = row
    return str(kind), str(text), None if box is None else tuple(map(float, box))
