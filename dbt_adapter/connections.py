"""The one session of a run of dbt, as connections of DB-API."""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from dbt.adapters.blendfusion.views import ViewFile
from dbt.adapters.contracts.connection import (
    AdapterResponse,
    Connection,
    ConnectionState,
    Credentials,
)
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtRuntimeError

from blendfusion import BlendFusionError, Budget
from blendfusion.services.dbapi import module as dbapi


@dataclass
class BlendFusionCredentials(Credentials):
    """A target in profiles.yml: the attached database that holds the tables of models and seeds,
    and what ``dbapi.connect`` takes."""

    attach: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    model: str | None = None
    cache: str | None = None
    budget: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    views: str = "target/blendfusion_views.json"
    """The file that keeps the views of models from one run of dbt to the next."""

    @property
    def type(self) -> str:
        return "blendfusion"

    @property
    def unique_field(self) -> str:
        return self.database

    def _connection_keys(self) -> tuple[str, ...]:
        return "database", "schema", "model", "tables", "views"


class OpenSession:
    """A session with the tables, databases and views of a target."""

    def __init__(self, credentials: BlendFusionCredentials) -> None:
        here = credentials.database
        if here not in credentials.attach:
            raise DbtRuntimeError(f"the database '{here}' is not among those under 'attach'")
        _make_file(credentials.attach[here])
        options = {"cache": credentials.cache} if credentials.cache is not None else {}
        if credentials.budget is not None:
            options["budget"] = Budget.parsed(credentials.budget)
        others = {name: url for name, url in credentials.attach.items() if name != here}
        self.connection = dbapi.connect(
            model=credentials.model,
            tables=credentials.tables,
            attach=others,
            settings=credentials.settings,
            **options,
        )
        self.session = self.connection.session
        self.session.attach(credentials.attach[here], here, read_only=False)
        self.views = ViewFile(Path(credentials.views), self.session)
        self.views.create_all()


def _make_file(url: str) -> None:
    """Make an empty file of SQLite that is missing: an empty file is an empty database."""
    scheme, colon, path = url.partition(":///")
    if colon and scheme == "sqlite":
        Path(path).touch()


class BlendFusionConnectionManager(SQLConnectionManager):
    """Connections of all threads of dbt are one session, until dbt ends."""

    TYPE = "blendfusion"
    _opened: ClassVar[dict[str, OpenSession]] = {}
    _opening = Lock()

    @classmethod
    def opened(cls, credentials: BlendFusionCredentials) -> OpenSession:
        """The session of a target, opened when it is first asked for."""
        key = repr((credentials, Path.cwd()))
        with cls._opening:
            if key not in cls._opened:
                cls._opened[key] = OpenSession(credentials)
                atexit.register(cls._opened[key].connection.close)
            return cls._opened[key]

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        if connection.state == ConnectionState.OPEN:
            return connection
        connection.handle = dbapi.connect(cls.opened(connection.credentials).session)
        connection.state = ConnectionState.OPEN
        return connection

    @contextlib.contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Raise dbt's error in place of one of BlendFusion's."""
        try:
            yield
        except (dbapi.Error, BlendFusionError) as problem:
            self.release()
            raise DbtRuntimeError(str(problem)) from problem

    def cancel(self, connection: Connection) -> None:
        """Close the cursors of a connection: their queries end."""
        connection.handle.close()

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        rows = cursor.rowcount
        asked = cursor.trace.usage.values
        text = "OK" if rows < 0 else f"OK {rows}"
        return AdapterResponse(
            _message=f"{text}, {asked} asked" if asked else text,
            rows_affected=None if rows < 0 else rows,
        )

    def add_query(
        self, sql: str, auto_begin: bool = True, bindings: Any = None, *rest: Any, **options: Any
    ) -> tuple[Connection, Any]:
        return super().add_query(sql, False, bindings or (), *rest, **options)

    def begin(self) -> Connection:
        """Statements take effect at once."""
        return self.get_thread_connection()

    def commit(self) -> Connection:
        """Statements take effect at once."""
        return self.get_thread_connection()
