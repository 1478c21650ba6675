"""A MariaDB server of one's own: in a temporary folder, on a socket of its own."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@cache
def _socket() -> Path | str:
    """The socket of a running server; the reason where there is none."""
    import pymysql

    server, installer = shutil.which("mariadbd"), shutil.which("mariadb-install-db")
    server = server or shutil.which("mariadbd", path="/usr/sbin")
    if server is None or installer is None:
        return "MariaDB is not installed"
    folder = Path(tempfile.mkdtemp(prefix="blendfusion-mysql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = ["--no-defaults", f"--datadir={folder / 'data'}", "--user=root"]
    made = subprocess.run(
        [installer, *place, "--skip-test-db", "--auth-root-authentication-method=normal"],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        return f"mariadb-install-db fails: {made.stderr[-200:]}"
    socket = folder / "s"
    process = subprocess.Popen(
        [
            *(server, *place, f"--socket={socket}", "--skip-networking"),
            *("--innodb-flush-log-at-trx-commit=0", f"--pid-file={folder / 'pid'}"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.wait)
    atexit.register(process.terminate)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if socket.exists():  # a driver that is refused leaves a socket open
            time.sleep(0.2)
            pymysql.connect(unix_socket=str(socket), user="root").close()
            return socket
        time.sleep(0.1)
    return "the server of MariaDB does not start"


_number = 0


def new_mysql_database() -> str:
    """The URL of a new, empty database. Skips the test without a server."""
    pytest.importorskip("pymysql")
    global _number
    _number += 1
    with connected() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE t{_number} CHARACTER SET utf8mb4")
    return f"mysql://root@localhost/t{_number}?unix_socket={_socket()}"


def connected(database: str | None = None) -> Any:
    """A connection to the server, or to a database of it. Skips the test without a server."""
    import pymysql

    socket = _socket()
    if isinstance(socket, str):
        pytest.skip(socket)
    return pymysql.connect(
        unix_socket=str(socket), user="root", database=database, autocommit=True, charset="utf8mb4"
    )
