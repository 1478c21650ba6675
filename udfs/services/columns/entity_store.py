"""The entities that queries of a session named, so that later queries compare new values with
them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from blendfusion.errors import ArgumentError, close_matches
from blendfusion.udfs.services.columns.name_registry import NameRegistry, texts_in


@dataclass(frozen=True, slots=True)
class KnownEntities:
    """Entities of the values of columns. ``by`` is what makes two values the same; None: the usual
    question."""

    by: str | None = None
    name_of: Mapping[str, str] = field(default_factory=dict)
    """For each value, the value that stands for its entity."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """The names that rows show instead, of renamed entities."""

    @property
    def names(self) -> tuple[str, ...]:
        """The titles of the entities, in ascending order."""
        return tuple(sorted({self.title(name) for name in self.name_of.values()}))

    def title(self, name: str) -> str:
        return self.titles.get(name, name)


class EntityStore(NameRegistry[KnownEntities]):
    """A session's entities by their names: those that ``llm_same(…, name => 'companies')`` found,
    or that ``add`` declared."""

    noun = "entities"
    maker = "llm_same(x, name => '{}')"

    def add(
        self, name: str, values: Iterable[str] | Mapping[str, str], by: str | None = None
    ) -> None:
        """Add known entities to ``name``, without a question: each value is one, or belongs to the
        one that a mapping names. Raises ArgumentError for a value that is known as another, or for
        another ``by``."""
        given = dict(values) if isinstance(values, Mapping) else {value: value for value in values}
        new = {entity: entity for entity in given.values()} | given
        with self._lock:
            own = self._kept.get(name, KnownEntities(by))
            if by is not None and by != own.by:
                raise ArgumentError(f"the entities '{name}' were made with by => {own.by!r}")
            for value, entity in new.items():
                if not isinstance(value, str) or not value.strip():
                    raise ArgumentError(f"an entity's value must be a text, not {value!r}")
                if own.name_of.get(value, entity) != entity:
                    raise ArgumentError(
                        f"'{value}' is known as '{own.name_of[value]}' among the entities '{name}'"
                    )
                if new[entity] != entity:
                    raise ArgumentError(f"'{entity}' is a name, and has another: '{new[entity]}'")
            self._kept[name] = replace(own, name_of={**own.name_of, **new})

    def keep(self, name: str, earlier: KnownEntities | None, found: KnownEntities) -> bool:
        """Keep what a run found that began with ``earlier``. False if another run has kept
        something since then: it must be found again."""
        with self._lock:
            if self._kept.get(name) is not earlier:
                return False
            self._kept[name] = found
            return True

    def rename(self, name: str, entity: str, title: str) -> None:
        """Show the entity ``entity`` of ``name`` as ``title``, and ask nothing. Two entities of one
        title are one in results. Raises ArgumentError."""
        if not title.strip():
            raise ArgumentError("the title of an entity is empty")
        with self._lock:
            own = self._of(name)
            same = [key for key in set(own.name_of.values()) if own.title(key) == entity]
            if not same:
                raise ArgumentError(
                    f"the entities '{name}' have no '{entity}'",
                    hint=close_matches(entity, own.names),
                )
            self._kept[name] = replace(own, titles={**own.titles, **dict.fromkeys(same, title)})

    def _size(self, kept: KnownEntities) -> int:
        return len(kept.names)

    def _to_json(self, kept: KnownEntities) -> dict[str, Any]:
        return {"by": kept.by, "values": dict(kept.name_of), "titles": dict(kept.titles)}

    def _from_json(self, held: dict[str, Any]) -> KnownEntities:
        by, name_of, titles = held["by"], dict(held["values"]), dict(held["titles"])
        texts_in(*name_of, *name_of.values(), *titles, *titles.values())
        if not isinstance(by, str | None) or not {*name_of.values()} <= name_of.keys():
            raise ValueError
        return KnownEntities(by, name_of, titles)
