"""The part of a session that keeps materialised views."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from blendfusion.services.views.registered_tables import RegisteredTables

if TYPE_CHECKING:
    from blendfusion.run.execution.executor import Elsewhere
    from blendfusion.services.views.columns import ModelColumns
    from blendfusion.services.views.folder import View
    from blendfusion.services.views.views import KeptViews, Refresh


class ViewKeeping(RegisteredTables):
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

    def deregister_table(self, name: str) -> None:
        super().deregister_table(name)
        if "kept_views" in vars(self):
            self.kept_views.release(name.strip('"'))

    def elsewhere(self) -> Elsewhere | None:
        """The function that runs a stage in a cluster, or from the rows that a view keeps."""
        found = super().elsewhere()
        if found is None and "kept_views" in vars(self):
            return self.kept_views.rows_of_stages
        return found

    @property
    def model_columns(self) -> ModelColumns:
        """The columns of answers that were added to Lance tables."""
        from blendfusion.services.views.columns import ModelColumns

        return ModelColumns(self)

    def update_tables(self, text: str) -> None:
        """Make the newest version of each view a table."""
        if "kept_views" in vars(self) or os.path.isdir(self.options.views_folder):
            self.kept_views.update()
        super().update_tables(text)
