"""Empty databases of all kinds that a session attaches."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import duckdb
from mysql_server import new_mysql_database
from postgres_server import new_database

import blendfusion as bf


def _sqlite(folder: Path) -> str:
    sqlite3.connect(folder / "d.db").close()
    return f"sqlite:///{folder / 'd.db'}"


def _duckdb(folder: Path) -> str:
    duckdb.connect(str(folder / "d.duckdb")).close()
    return f"duckdb:///{folder / 'd.duckdb'}"


KINDS: dict[str, Callable[[Path], str]] = {
    "sqlite": _sqlite,
    "duckdb": _duckdb,
    "postgresql": lambda folder: new_database(),
    "mysql": lambda folder: new_mysql_database(),
}
"""Makes a database of a kind, in a folder if it is a file: its URL. Skips without a server."""


def opened(url: str, *, read_only: bool = False) -> bf.Session:
    """A session with the database attached as ``d``; its model finds what has 'good' in it good."""
    session = bf.connect(bf.ScriptedModel(lambda call: "good" in str(call.values[0])), cache=None)
    session.attach(url, name="d", read_only=read_only)
    return session
