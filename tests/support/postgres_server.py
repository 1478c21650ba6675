"""A PostgreSQL server of one's own: in a temporary folder, on a free port of the loopback."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

PASSWORD = "p@ss:w/rd"
"""With characters that a URL escapes."""
_ESCAPED = "p%40ss%3Aw%2Frd"
_USER = "tester"


def _programs() -> Path | None:
    """The folder of initdb and postgres; None where there is none."""
    found = shutil.which("initdb")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    places += [Path(found).resolve().parent] if found else []
    return next((p for p in places if (p / "initdb").exists() and (p / "postgres").exists()), None)


@cache
def _server() -> str | int:
    """The port of a running server; the reason where there is none."""
    programs = _programs()
    if programs is None:
        return "PostgreSQL is not installed"
    folder = Path(tempfile.mkdtemp(prefix="blendfusion-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    user: str | None = None
    if os.geteuid() == 0:  # initdb refuses the superuser
        try:
            user = pwd.getpwnam("nobody").pw_name
        except KeyError:
            return "PostgreSQL does not run as root, and there is no user 'nobody'"
        shutil.chown(folder, user)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    data = folder / "data"
    made = subprocess.run(
        [
            *(programs / "initdb", "-D", data, "-U", _USER, "--pwfile", secret),
            *("-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale", "C"),
        ],
        user=user,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        return f"initdb fails: {made.stderr.strip()[-200:]}"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [
        *(str(programs / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder)),
        *("-h", "127.0.0.1", "-F", "-c", "max_connections=60", "-c", "shared_buffers=16MB"),
    ]
    _starts.append(_Start(command, user, folder, port))
    return port if _starts[-1].begin() else "the server of PostgreSQL does not start"


class _Start:
    """How the server is started."""

    def __init__(self, command: list[str], user: str | None, folder: Path, port: int) -> None:
        self._command, self._user, self._folder, self._port = command, user, folder, port
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.end)

    def begin(self) -> bool:
        """Start the server; whether it takes connections."""
        import psycopg

        process = self._process = subprocess.Popen(
            self._command,
            user=self._user,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            try:
                psycopg.connect(_url(self._port, "postgres", _ESCAPED)).close()
                return True
            except psycopg.OperationalError:  # it is not there yet, or starts up
                time.sleep(0.05)
        return False

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends its connections, SIGQUIT leaves what a crash leaves."""
        if self._process is not None:
            _stop(self._process, how)
            self._process = None


_starts: list[_Start] = []


@contextmanager
def server_down(how: signal.Signals = signal.SIGINT) -> Iterator[None]:
    """The server is stopped in the block, and starts again behind it."""
    (start,) = _starts
    start.end(how)
    try:
        yield
    finally:
        assert start.begin(), "the server of PostgreSQL does not start again"


def _stop(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    process.send_signal(how)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def url_of(database: str = "postgres", password: str = _ESCAPED) -> str:
    """The address of a database of the server, which is started. Skips the test without one."""
    pytest.importorskip("psycopg", reason="the extra 'postgres' is not installed")
    port = _server()
    if isinstance(port, str):
        pytest.skip(port)
    return _url(port, database, password)


def _url(port: int, database: str, password: str) -> str:
    return f"postgresql://{_USER}:{password}@127.0.0.1:{port}/{database}"


_number = 0


def new_database() -> str:
    """The address of a new, empty database. Skips the test without a server."""
    import psycopg

    global _number
    _number += 1
    with psycopg.connect(url_of(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE t{_number} TEMPLATE template0")
    return url_of(f"t{_number}")
