"""Opens a database by its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blendfusion.services.sources.database import Database
    from blendfusion.services.sources.places import Place


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
