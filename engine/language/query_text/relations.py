"""The relations of a query, their columns, and the uses of select items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

SITE = "bf_site_"
"""How the names of the functions begin that stand for calls in a skeleton."""


@dataclass(frozen=True, slots=True)
class Item:
    """A column of a relation: its name, and the select items that give its values: one for each
    branch of a set operation, none for a column of a table. Or all columns of a table of the
    catalogue, which is asked only where their names or number matter."""

    name: str = ""
    origins: tuple[exp.Expr, ...] = ()
    table: str | None = None
    """The table's name as SQL."""


@dataclass(frozen=True, slots=True)
class Use:
    """A column that refers to a select item, and the fields that it takes of its value."""

    column: exp.Expr
    fields: tuple[str, ...] = ()


@dataclass(slots=True)
class Relation:
    """A source of FROM."""

    path: tuple[str, ...] = ()
    items: Sequence[Item] = ()
    known: bool = True
    """``items`` are all its columns."""
    visible: bool = True
    """It has columns behind ON: the right side of a semi join has none."""
    merged: frozenset[str] = frozenset()
    """The columns of USING, which are one with those of a relation before it."""


@dataclass(slots=True)
class Frame:
    """The relations of one SELECT, and of those around it."""

    relations: list[Relation] = field(default_factory=list)
    parent: Frame | None = None
    outputs: Sequence[Item] = ()


Common: TypeAlias = "Mapping[str, Sequence[Item]]"


def name_of(identifier: exp.Expr) -> str:
    """The name that an identifier means: DataFusion lowers those without quotes."""
    name = str(identifier.name)
    return name if identifier.args.get("quoted") else name.lower()
