"""An attached database as a catalog of a session, and its default schema as a schema."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

from datafusion.catalog import CatalogProvider, Schema, SchemaProvider, Table

from blendfusion.datafusion.scan_errors import ScanError
from blendfusion.errors import BlendFusionError, QueryError
from blendfusion.services.sources.database import Database
from blendfusion.services.sources.remote_table import Heard, RemoteTable


class RemoteSchema(SchemaProvider):
    """The tables and views of a schema. The columns of a table are looked up once."""

    def __init__(
        self, database: Database, schema: str, heard: Heard, is_shown: Callable[[str, str], bool]
    ) -> None:
        self._database, self._schema, self._heard = database, schema, heard
        self._is_shown = is_shown
        self._tables: dict[str, RemoteTable] = {}
        self._lock = RLock()

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]  # what DataFusion reads it as
        try:
            found = self._database.tables(self._schema)
            return [name for name in found if self._is_shown(self._schema, name)]
        except BlendFusionError as error:
            raise ScanError(error) from error

    def table(self, name: str) -> Table | None:
        found = self.remote_table(name)
        return None if found is None else Table(found)

    def remote_table(self, name: str) -> RemoteTable | None:
        """The table ``name``; None if there is none."""
        if not self._is_shown(self._schema, name):
            return None
        with self._lock:
            if name not in self._tables:
                try:
                    columns = self._database.columns(self._schema, name)
                except BlendFusionError as error:
                    raise ScanError(error) from error
                if not columns:
                    return None
                self._tables[name] = RemoteTable(
                    self._database, self._schema, name, columns, self._heard
                )
            return self._tables[name]

    def table_exist(self, name: str) -> bool:
        known = name in self._tables and self._is_shown(self._schema, name)
        return known or name in self.table_names

    def register_table(self, name: str, table: object) -> None:
        raise ScanError(self._refusal())

    def deregister_table(self, name: str, cascade: bool = True) -> None:
        raise ScanError(self._refusal())

    def _refusal(self) -> QueryError:
        shown = self._database.place.shown
        return QueryError(
            f"tables of the database '{shown}' are not made or dropped here",
            hint="INSERT INTO, CREATE TABLE … AS and frame.write_table write to it if it is attached "
            "with read_only=False; all else is left to its own tools.",
        )

    def forget(self, name: str) -> None:
        """Look up the columns of ``name`` again: it was written to."""
        with self._lock:
            self._tables.pop(name, None)


class RemoteCatalog(CatalogProvider):
    """The schemas of a database."""

    def __init__(self, database: Database, heard: Heard) -> None:
        self._database, self._heard = database, heard
        self._schemas: dict[str, RemoteSchema] = {}
        self.is_shown: Callable[[str, str], bool] = lambda schema, table: True
        """Whether the session has a table of a schema."""

    def schema_names(self) -> set[str]:
        try:
            return set(self._database.schemas())
        except BlendFusionError as error:
            raise ScanError(error) from error

    def schema(self, name: str) -> Schema | None:
        found: Schema | None = self.remote_schema(name)  # type: ignore[assignment]  # as it takes
        return found

    def remote_schema(self, name: str) -> RemoteSchema | None:
        """The schema ``name``; None if there is none."""
        if name not in self._schemas:
            if name not in self.schema_names():
                return None
            self._schemas[name] = RemoteSchema(self._database, name, self._heard, self._shows)
        return self._schemas[name]

    def _shows(self, schema: str, table: str) -> bool:
        return self.is_shown(schema, table)
