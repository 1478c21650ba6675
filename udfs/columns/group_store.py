"""The groups that queries of a session named, so that later queries sort new values into them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from blendfusion.errors import ArgumentError, close_matches

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


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of the values of a column: ``levels`` from the finest to the coarsest.

    ``by`` is what they are about, and ``into`` the number of clusters that was wanted; None: the
    query gave none."""

    by: str | None
    into: int | None
    levels: tuple[tuple[Group, ...], ...]

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


class GroupStore(Mapping[str, Groups]):
    """A session's groups by their names: those that ``llm_group(…, name => 'complaints')`` made.

    A mapping to ``Groups``; ``del`` forgets some, so that the next query makes them anew."""

    def __init__(self) -> None:
        self._groups: dict[str, Groups] = {}
        self._lock = Lock()

    def __getitem__(self, name: str) -> Groups:
        if name not in self._groups:
            near = close_matches(name, self._groups)
            raise KeyError(f"the session has no groups called '{name}'. {near}".strip())
        return self._groups[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._groups))

    def __len__(self) -> int:
        return len(self._groups)

    def __delitem__(self, name: str) -> None:
        with self._lock:
            del self._groups[self._known(name)]

    def __repr__(self) -> str:
        """
        >>> GroupStore()
        GroupStore()
        """
        shown = ", ".join(f"{name}: {len(self._groups[name].names)} names" for name in self)
        return f"GroupStore({shown})"

    def keep(self, name: str, groups: Groups) -> Groups:
        """Keep ``groups``, and return those that the session has then: of two runs at once, the
        first one's, with as many levels as either found."""
        with self._lock:
            earlier = self._groups.get(name)
            if earlier is not None and len(earlier.levels) >= len(groups.levels):
                return earlier
            self._groups[name] = groups
            return groups

    def rename(self, name: str, group: str, title: str) -> None:
        """Show the group ``group`` of ``name`` as ``title``, at whatever level it is. No value is
        asked about again; two groups of one title are one in results. Raises ArgumentError."""
        if not title.strip():
            raise ArgumentError("the title of a group is empty")
        with self._lock:
            own = self._groups[self._known(name)]
            titles = [one.title for level in own.levels for one in level]
            if group not in titles:
                raise ArgumentError(
                    f"the groups '{name}' have no '{group}'", hint=close_matches(group, titles)
                )
            levels = tuple(
                tuple(replace(one, title=title) if one.title == group else one for one in level)
                for level in own.levels
            )
            self._groups[name] = replace(own, levels=levels)

    def save(self, name: str, path: str | os.PathLike[str]) -> None:
        """Write the groups ``name`` to a JSON file. Raises ArgumentError, OSError."""
        own = self._groups[self._known(name)]
        levels = [
            [
                {"name": g.name, "title": g.title, "parent": g.parent, "samples": [*g.samples]}
                for g in level
            ]
            for level in own.levels
        ]
        held = {"by": own.by, "into": own.into, "levels": levels}
        Path(path).write_text(json.dumps(held, ensure_ascii=False, indent=1) + "\n", "utf-8")

    def load(self, name: str, path: str | os.PathLike[str]) -> Groups:
        """The groups of a file that ``save`` wrote, which are those of ``name`` from here on.
        Raises ArgumentError, which names the file."""
        file = Path(path)
        try:
            groups = _read(json.loads(file.read_text("utf-8")))
        except OSError as problem:
            raise ArgumentError(f"cannot read '{file}': {problem.strerror}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ArgumentError(
                f"'{file}' holds no groups",
                hint="session.groups.save(name, path) writes such a file.",
            ) from None
        with self._lock:
            self._groups[name] = groups
        return groups

    def _known(self, name: str) -> str:
        if name not in self._groups:
            raise ArgumentError(
                f"the session has no groups called '{name}'",
                hint=close_matches(name, self._groups)
                or f"llm_group(x, name => '{name}') makes some.",
            )
        return name


def _read(held: dict[str, Any]) -> Groups:
    """The groups of a file. Raises ValueError and others for what is none."""
    levels = tuple(tuple(map(_group, level)) for level in held["levels"])
    by, into = held["by"], held["into"]
    if not levels or not all(levels) or not isinstance(by, str | None):
        raise ValueError
    if not (into is None or type(into) is int):
        raise ValueError
    return Groups(by, into, levels)


def _group(held: dict[str, Any]) -> Group:
    name, title, parent, samples = (held[key] for key in ("name", "title", "parent", "samples"))
    texts = [name, title, *samples, *([] if parent is None else [parent])]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError
    return Group(name, title, parent, tuple(samples))
