"""Databases as catalogs of a session: SQLite, DuckDB, PostgreSQL and MySQL, read where they lie."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("services.scans",),
    session="session:Attaching",
    destinations="write_statements",
    columns="columns:table_of",
    statements={
        "ATTACH": "statements:attach_database",
        "DETACH": "statements:detach_database",
    },
)
