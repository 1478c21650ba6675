"""The groups and entities that a session keeps by their names."""

from __future__ import annotations

from dataclasses import dataclass, field

from blendfusion.udfs.services.columns.entity_store import EntityStore
from blendfusion.udfs.services.columns.group_store import GroupStore


@dataclass(frozen=True, slots=True)
class Meanings:
    """The stores of a session, for calls over whole columns."""

    groups: GroupStore = field(default_factory=GroupStore)
    entities: EntityStore = field(default_factory=EntityStore)
