"""The part of a session that knows the versions of tables of lakes and of Lance."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from datafusion import SessionContext

from blendfusion.prepare.frame_sources import FrameSources

_OPERATORS = ("DatasetExec: ", "DeltaScanExec")


class RegisteredTables(FrameSources):
    """A context that remembers what was registered as its tables."""

    def register_table(self, name: str, table: Any) -> None:
        super().register_table(name, table)
        self.registered_tables[name.strip('"')] = table

    @cached_property
    def registered_tables(self) -> dict[str, Any]:
        """The objects that were registered as tables, by their names; others may have the names by
        now."""
        return {}

    def lance_place(self, name: str) -> str | None:
        """The place of the Lance table ``name``; None if the session has no such table now."""
        place: str | None = getattr(self.registered_tables.get(name), "place", None)
        return place if place is not None and _is_scanned(self, name) else None

    def version_of(self, name: str) -> str | None:
        """The version of the table ``name`` of a lake or of Lance; None for another table."""
        found: str | None = getattr(self.registered_tables.get(name), "version", None)
        if found is not None and _is_scanned(self, name):
            return found
        place = self.lance_place(name)
        if place is None:
            return None
        from blendfusion.services.scans.lance_table import opened_table

        table = opened_table(place)
        files = [file.path for part in table.get_fragments() for file in part.data_files()]
        return f"{place}@{table.version} of {files}"  # one made anew has its numbers again


def _is_scanned(session: FrameSources, name: str) -> bool:
    """Whether the table ``name`` is one of a lake or of Lance, and no other that has the name."""
    from blendfusion.udfs.declare.arguments import quoted_name

    quoted = quoted_name(name)
    if not session.table_exist(quoted):
        return False
    plan = SessionContext.table(session, quoted).execution_plan().display_indent()
    return any(operator in plan for operator in _OPERATORS)
