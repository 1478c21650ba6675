"""The tables of a session, by the names that queries have for them."""

from __future__ import annotations

from typing import Any

from blendfusion.errors import QueryError, close_matches, given_names
from blendfusion.session import Session
from blendfusion.udfs.declare.arguments import quoted_name

_DEFAULT = ("datafusion", "public")


def table_names(session: Session) -> dict[str, str]:
    """The tables as SQL writes them, by the names that are shown."""
    listed = session.sql(
        "SELECT table_catalog, table_schema, table_name FROM information_schema.tables "
        "WHERE table_schema <> 'information_schema' ORDER BY 1, 2, 3",
        read_only=True,
    ).to_pylist()
    short = {
        (row["table_schema"], row["table_name"])
        for row in listed
        if row["table_catalog"] == _DEFAULT[0]
    }
    found = {}
    for row in listed:
        catalog, schema, table = row.values()
        if not given_names([table]) or (catalog != _DEFAULT[0] and (catalog, table) in short):
            continue
        path = [part for part in (catalog, schema) if part not in _DEFAULT] + [table]
        found[".".join(path)] = ".".join(map(quoted_name, path))
    return found


def table_path(session: Session, name: str) -> str:
    """A table as SQL writes it. Raises QueryError for a name that no table has."""
    known = table_names(session)
    alike = [shown for shown in known if shown.lower() == name.lower()]
    chosen = name if name in known else alike[0] if len(alike) == 1 else None
    if chosen is None:
        raise QueryError(f"there is no table {name!r}", hint=close_matches(name, known) or None)
    return known[chosen]


def describe(session: Session, name: str) -> list[dict[str, Any]]:
    """The columns of a table: name, type, and comment where it has one."""
    fields = session.table(table_path(session, name)).schema()
    comments = [(field.metadata or {}).get(b"comment", b"").decode() for field in fields]
    return [
        {"name": field.name, "type": str(field.type)} | ({"comment": comment} if comment else {})
        for field, comment in zip(fields, comments, strict=True)
    ]
