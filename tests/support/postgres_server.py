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
    import psycopg

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
    process = subprocess.Popen(
        [
            *(programs / "postgres", "-D", data, "-p", str(port), "-k", folder),
            *("-h", "127.0.0.1", "-F", "-c", "max_connections=60", "-c", "shared_buffers=16MB"),
        ],
        user=user,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(_stop, process)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            psycopg.connect(_url(port, "postgres", _ESCAPED)).close()
            return port
        except psycopg.OperationalError:  # it is not there yet, or starts up
            time.sleep(0.05)
    return "the server of PostgreSQL does not start"


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
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
