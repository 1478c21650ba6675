"""The groups that queries of a session named, so that later queries sort new values into them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from blendfusion.errors import ArgumentError, close_matches
from blendfusion.udfs.services.columns.name_registry import NameRegistry, texts_in

OTHER = "other"
"""The group of the texts that fit no name."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of values by meaning."""

    name: str
    """The model's name for it, which questions offer as an option."""
    title: str
    """The name that rows show: ``name``, unless it was renamed."""
    parent: str | None = None
    """The name of its group at the next level; None at the highest level."""
    samples: tuple[str, ...] = ()
    """The values by which the model named it, those nearest to the centre of its cluster first."""
    description: str = ""
    """A sentence by the model on what the samples have in common; '': none was wanted."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of the values of a column: ``levels`` from the finest to the coarsest.

    ``by``: the aspect that they differ in. ``into``: the requested number of clusters; None if the
    query gave none. ``described``: whether descriptions were wanted."""

    by: str | None
    into: int | None
    levels: tuple[tuple[Group, ...], ...]
    described: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The titles of the groups of the finest level."""
        return tuple(dict.fromkeys(group.title for group in self.levels[0]))

    def title(self, name: str | None, level: int = 1) -> str | None:
        """The title of the group ``name`` of ``level``; ``other`` and None have none of their
        own."""
        return next((g.title for g in self.levels[level - 1] if g.name == name), name)

    def title_above(self, name: str | None, level: int) -> str | None:
        """The title of the group at ``level`` that holds the group ``name`` of level 1."""
        for groups in self.levels[: level - 1]:
            name = next((group.parent for group in groups if group.name == name), name)
        return self.title(name, level)


class GroupStore(NameRegistry[Groups]):
    """A session's groups by their names: those that ``llm_group(…, name => 'complaints')`` made."""

    noun = "groups"
    maker = "llm_group(x, name => '{}')"

    def keep(self, name: str, groups: Groups) -> Groups:
        """Keep ``groups``, and return those that the session has then: of two runs at once, the
        first one's, with as many levels as either found."""
        with self._lock:
            earlier = self._kept.get(name)
            if earlier is not None and len(earlier.levels) >= len(groups.levels):
                return earlier
            self._kept[name] = groups
            return groups

    def rename(self, name: str, group: str, title: str) -> None:
        """Show the group ``group`` of ``name`` as ``title``, at whatever level it is. No value is
        asked about again; two groups of one title are one in results. Raises ArgumentError."""
        if not title.strip():
            raise ArgumentError("the title of a group is empty")
        with self._lock:
            own = self._of(name)
            titles = [one.title for level in own.levels for one in level]
            if group not in titles:
                raise ArgumentError(
                    f"the groups '{name}' have no '{group}'", hint=close_matches(group, titles)
                )
            levels = tuple(
                tuple(replace(one, title=title) if one.title == group else one for one in level)
                for level in own.levels
            )
            self._kept[name] = replace(own, levels=levels)

    def _size(self, kept: Groups) -> int:
        return len(kept.names)

    def _to_json(self, kept: Groups) -> dict[str, Any]:
        return {
            "by": kept.by,
            "into": kept.into,
            "levels": [[_group_to_json(group) for group in level] for level in kept.levels],
            **({"described": True} if kept.described else {}),
        }

    def _from_json(self, held: dict[str, Any]) -> Groups:
        levels = tuple(tuple(map(_group, level)) for level in held["levels"])
        by, into = held["by"], held["into"]
        if not levels or not all(levels) or not isinstance(by, str | None):
            raise ValueError
        if not (into is None or type(into) is int):
            raise ValueError
        return Groups(by, into, levels, bool(held.get("described")))


def _group_to_json(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "title": group.title,
        "parent": group.parent,
        "samples": [*group.samples],
        **({"description": group.description} if group.description else {}),
    }


def _group(held: dict[str, Any]) -> Group:
    name, title, *samples = texts_in(held["name"], held["title"], *held["samples"])
    parent = held["parent"]
    [description] = texts_in(held["description"]) if "description" in held else [""]
    parent = parent if parent is None else texts_in(parent)[0]
    return Group(name, title, parent, tuple(samples), description)
