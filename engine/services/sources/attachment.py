"""One attached database: its name in a session, and the queries that scans of it would be."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from datafusion import SessionContext

from blendfusion.errors import QueryError
from blendfusion.services.sources.catalog import RemoteCatalog, RemoteSchema
from blendfusion.services.sources.database import Database
from blendfusion.services.sources.places import Place, place_of
from blendfusion.udfs.declare.arguments import quoted_name

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Attachment:
    """A database as a session has it."""

    def __init__(self, name: str, database: Database) -> None:
        self.name, self.database = name, database
        self.catalog = RemoteCatalog(database, self._hear)
        self._heard: list[tuple[str, str]] | None = None
        self._lock = Lock()
        self.own_names: list[str] = []
        """The tables that have a name without that of the database."""

    @property
    def default_schema(self) -> RemoteSchema | None:
        return self.catalog.remote_schema(self.database.default_schema)

    def _hear(self, table: str, query: str) -> None:
        if self._heard is not None:
            self._heard.append((table, query))

    @contextmanager
    def hearing(self) -> Iterator[list[tuple[str, str]]]:
        """The tables and queries of scans that are planned within this context."""
        with self._lock:
            heard: list[tuple[str, str]] = []
            self._heard = heard
            try:
                yield heard
            finally:
                self._heard = None

    def register_tables(self, session: SessionContext) -> None:
        """Give the tables of the default schema names of their own in a session; a name that the
        session has already stays."""
        schema = self.default_schema
        taken = session.catalog().schema().names()
        for name in [] if schema is None else schema.table_names:
            table = schema.table(name) if schema is not None and name not in taken else None
            if table is not None:
                session.register_table(quoted_name(name), table)
                self.own_names.append(name)

    def detach(self, session: SessionContext) -> None:
        """Take its tables out of a session, and close it."""
        for name in self.own_names:
            session.deregister_table(quoted_name(name))
        session.catalog().deregister_schema(self.name)
        # A catalog stays: DataFusion cannot take one out. It has no schema any more.
        session.register_catalog_provider(self.name, _Nothing())
        self.database.close()


class _Nothing(RemoteCatalog):
    """A catalog without a schema."""

    def __init__(self) -> None:
        pass

    def schema_names(self) -> set[str]:
        return set()

    def schema(self, name: str) -> None:
        return None


def attach_database(
    session: Any,
    url: str | os.PathLike[str],
    name: str | None,
    kind: str | None,
    *,
    read_only: bool,
) -> Attachment:
    """See ``Attaching.attach``."""
    place = place_of(url, kind)
    chosen = place.name if name is None else name
    if not _NAME.fullmatch(chosen):
        raise QueryError(
            f"'{chosen}' is no name for a database",
            hint="Letters, digits and _, for example name='shop'.",
        )
    if chosen in session.catalog().names() or chosen in session.attached:
        raise QueryError(
            f"the session has a schema '{chosen}' already", hint="Choose another: name='…'."
        )
    if chosen in session.catalog_names() and session.catalog(chosen).names():
        raise QueryError(
            f"the session has a catalog '{chosen}' already", hint="Choose another: name='…'."
        )
    found = Attachment(chosen, open_database(place, read_only=read_only))
    session.register_catalog_provider(chosen, found.catalog)
    default = found.default_schema
    if default is not None:
        session.catalog().register_schema(chosen, default)
    return found


def open_database(place: Place, *, read_only: bool) -> Database:
    """The database at a place. Raises QueryError if it does not open, and ModelNotFound without the
    library that reads it."""
    if place.kind == "sqlite":
        from blendfusion.services.sources.sqlite import SqliteDatabase

        return SqliteDatabase(place, read_only)
    if place.kind == "duckdb":
        from blendfusion.services.sources.duck import DuckDatabase

        return DuckDatabase(place, read_only)
    if place.kind == "postgresql":
        from blendfusion.services.sources.postgres import PostgresDatabase

        return PostgresDatabase(place, read_only)
    from blendfusion.services.sources.mysql import MysqlDatabase

    return MysqlDatabase(place, read_only)
