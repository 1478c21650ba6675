"""The part of a session that keeps materialised views."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from datafusion import SessionContext

from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.services.views.columns import ModelColumns
    from blendfusion.services.views.folder import View
    from blendfusion.services.views.views import KeptViews, Refresh

_OPERATORS = ("DatasetExec: ", "DeltaScanExec")


class ViewKeeping(FrameSources):
    """A context whose materialised views lie in a folder."""

    @cached_property
    def kept_views(self) -> KeptViews:
        """The views of the folder, as this session has them."""
        from blendfusion.services.views.views import KeptViews

        return KeptViews(self)

    @property
    def materialized_views(self) -> Mapping[str, View]:
        """The materialised views by their names, in the order of these: query, rows, version, time
        of the last refresh. ``CREATE MATERIALIZED VIEW v AS SELECT …`` makes one in the folder that
        the option ``views_folder`` names, and ``REFRESH v`` brings it up to date (docs/views.md).
        Raises QueryError for a file that is no view."""
        return self.kept_views.all()

    def refresh_view(self, name: str) -> Refresh:
        """Bring the materialised view ``name`` up to date, as ``REFRESH`` does: what was asked, and
        why. Raises QueryError for an unknown one, and as its query does; the version before is
        served then."""
        return self.kept_views.refresh(name)

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
        from blendfusion.files.lance_table import opened_table

        return f"{place}@{opened_table(place).version}"

    @property
    def model_columns(self) -> ModelColumns:
        """The columns of answers that were added to Lance tables."""
        from blendfusion.services.views.columns import ModelColumns

        return ModelColumns(self)

    def update_tables(self) -> None:
        """Make the newest version of each view a table."""
        super().update_tables()
        if "kept_views" in vars(self) or os.path.isdir(self.options.views_folder):
            self.kept_views.update()


def _is_scanned(session: ViewKeeping, name: str) -> bool:
    """Whether the table ``name`` is one of a lake or of Lance, and no other that has the name."""
    from blendfusion.udfs.declare.arguments import quoted_name

    quoted = quoted_name(name)
    if not session.table_exist(quoted):
        return False
    plan = SessionContext.table(session, quoted).execution_plan().display_indent()
    return any(operator in plan for operator in _OPERATORS)
