"""The groups and entities that a session keeps, as tables of ``information_schema``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.udfs.declare.ingredient import Ingredient

if TYPE_CHECKING:
    from blendfusion.services.meanings.session import Meanings


def groups_of(session: Meanings, ingredients: Mapping[str, Ingredient]) -> pa.Table:
    """The groups, one row each."""
    own = [
        {
            "groups": name,
            "level": level,
            "name": group.title,
            "parent": groups.title(group.parent, level + 1) if group.parent else None,
            "about": groups.by,
            "description": group.description or None,
            "samples": [*group.samples],
        }
        for name, groups in session.groups.items()
        for level, members in enumerate(groups.levels, 1)
        for group in members
    ]
    return pa.Table.from_pylist(own, schema=_GROUPS)


def entities_of(session: Meanings, ingredients: Mapping[str, Ingredient]) -> pa.Table:
    """The entities, one row for each value."""
    own = [
        {"entities": name, "name": known.title(entity), "value": value, "about": known.by}
        for name, known in session.entities.items()
        for value, entity in sorted(known.name_of.items())
    ]
    columns = ("entities", "name", "value", "about")
    return pa.Table.from_pylist(own, schema=pa.schema([(name, pa.string()) for name in columns]))


_GROUPS = pa.schema(
    [
        ("groups", pa.string()),
        ("level", pa.int64()),
        ("name", pa.string()),
        ("parent", pa.string()),
        ("about", pa.string()),
        ("description", pa.string()),
        ("samples", pa.list_(pa.string())),
    ]
)
