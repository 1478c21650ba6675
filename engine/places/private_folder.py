"""Folders that are gone with this process, however it ends: a small process removes them then."""

from __future__ import annotations

import atexit
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

_CODE = """
import json, os, shutil, signal, sys, time
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
for folder in [json.loads(line) for line in sys.stdin]:
    until = time.monotonic() + 30
    while os.path.lexists(folder) and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)  # others may be about to write into it
        if os.path.lexists(folder):
            time.sleep(0.05)
"""
_END_SECONDS = 1.0


def private_folder(owner: object, prefix: str) -> Path:
    """A new folder for its user alone. It lasts as long as ``owner``, and no longer than this
    process, even if that is killed. Raises OSError where it cannot be made."""
    folder = Path(tempfile.gettempdir()) / f"{prefix}{secrets.token_hex(8)}"
    _REMOVER.add(folder)  # first: a kill may come at any moment
    folder.mkdir(mode=0o700)
    weakref.finalize(owner, _REMOVER.remove, folder)
    return folder


class _Remover:
    """The process that removes folders when its standard input ends. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._folders: list[Path] = []
        self._owner = os.getpid()

    def add(self, folder: Path) -> None:
        with self._lock:
            if self._owner != os.getpid():  # a fork: the folders are its parent's
                self._owner, self._process, self._folders = os.getpid(), None, []
            self._folders.append(folder)
            if self._process is None or not _has_taken(self._process, [folder]):
                self._start()

    def remove(self, folder: Path) -> None:
        if self._owner != os.getpid():
            return
        rmtree(folder, ignore_errors=True)
        with self._lock, suppress(ValueError):
            self._folders.remove(folder)

    def _start(self) -> None:
        if self._process is None:
            atexit.register(self._end)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=tempfile.gettempdir(),
            start_new_session=True,  # keys of the terminal are not for it
        )
        _has_taken(self._process, self._folders)

    def _end(self) -> None:
        process = self._process
        if process is None or self._owner != os.getpid():
            return
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)


def _has_taken(process: subprocess.Popen[str], folders: list[Path]) -> bool:
    """Whether the process has these folders."""
    assert process.stdin is not None
    try:
        process.stdin.writelines(json.dumps(str(folder)) + "\n" for folder in folders)
        process.stdin.flush()
    except OSError:
        process.kill()
        process.wait()
    return process.poll() is None


_REMOVER = _Remover()
