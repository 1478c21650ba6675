"""A session as a database of Python's DB-API 2.0 (PEP 249): ``blendfusion.dbapi``."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Mapping
from typing import Any

from blendfusion.entry_points import connect as open_session
from blendfusion.errors import ArgumentError
from blendfusion.services.dbapi.connection import Connection, Cursor
from blendfusion.services.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    translate,
)
from blendfusion.services.dbapi.errors import Warning as Warning  # noqa: A004 - PEP 249's name
from blendfusion.services.dbapi.types import BINARY, DATETIME, NUMBER, ROWID, STRING, TypeObject
from blendfusion.session import Session

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "TypeObject",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
threadsafety = 2
"""Threads may share the module and connections."""
paramstyle = "qmark"
"""``WHERE id = ?``, with values in order; ``$name`` takes those of a dict."""
Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 - the name of PEP 249
    """The local date of seconds since the epoch."""
    return datetime.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 - the name of PEP 249
    """The local time of seconds since the epoch."""
    return datetime.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802 - the name of PEP 249
    """The local date and time of seconds since the epoch."""
    return datetime.datetime(*time.localtime(ticks)[:6])


def connect(
    session: Session | None = None,
    *,
    tables: Mapping[str, str | os.PathLike[str]] | None = None,
    attach: Mapping[str, str | os.PathLike[str]] | None = None,
    settings: Mapping[str, str] | None = None,
    **options: Any,
) -> Connection:
    """A connection to ``session``, or to a session of its own, which ends with it.

    ``tables`` are files by the names of their tables, ``attach`` databases by their names,
    ``settings`` options of the session as texts, and ``options`` what ``bf.connect`` takes:
    ``model``, ``cache``, ``budget``, …. Raises the errors of DB-API in place of BlendFusion's,
    which are their causes.

    >>> import blendfusion as bf
    >>> session = bf.connect(None, cache=None)
    >>> frame = session.from_pydict({"a": [1, 2]}, name="t")
    >>> cursor = bf.dbapi.connect(session).cursor().execute("SELECT a + ? AS b FROM t ORDER BY a", [10])
    >>> cursor.fetchall()
    [(11,), (12,)]
    """
    with translate():
        if session is not None and options:
            raise ArgumentError(f"{next(iter(options))} is an option of a new session")
        own = session is None
        opened = open_session(**options) if session is None else session
        for name, text in (settings or {}).items():
            opened.change_option(name, text)
        for name, file in (tables or {}).items():
            opened.register_file(file, name)
        for name, url in (attach or {}).items():
            opened.attach(url, name)
        return Connection(opened, own=own)
