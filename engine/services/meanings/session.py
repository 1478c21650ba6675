"""The part of a session that keeps groups and entities by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.udfs.services.columns.entity_store import EntityStore
    from blendfusion.udfs.services.columns.group_store import GroupStore


class Meanings(FrameSources):
    """A context whose queries keep groups and entities."""

    @property
    def groups(self) -> GroupStore:
        """The groups by meaning that queries named: ``llm_group(…, name => 'complaints')``."""
        from blendfusion.udfs.services.columns.group_store import GroupStore

        return self.runs.kept.of(GroupStore)

    @property
    def entities(self) -> EntityStore:
        """The entities that queries named: ``llm_same(…, name => 'companies')``."""
        from blendfusion.udfs.services.columns.entity_store import EntityStore

        return self.runs.kept.of(EntityStore)
