"""The tables that a question is answered from: columns, types, sample values and join keys."""

from __future__ import annotations

from dataclasses import dataclass

from blendfusion.services.ask.schema.keys import Key
from blendfusion.services.ask.schema.layer import Metric


@dataclass(frozen=True, slots=True)
class Column:
    """A column with a SQL type word, a few sample values, and its distinct values if they can be
    linked to words of a question."""

    name: str
    type: str
    samples: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    complete: bool = False
    """Whether ``values`` are all that the column has."""
    note: str = ""
    """The meaning of the column: its comment, and what the semantic layer adds."""
    free_text: bool = False
    """Whether the values are sentences rather than names."""


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    note: str = ""
    rows: int = 0
    """The rows that were read: at most 100,000."""
    left_out: int = 0
    """The columns that do not fit the model's window."""


@dataclass(frozen=True, slots=True)
class Catalog:
    tables: tuple[Table, ...]
    keys: tuple[Key, ...] = ()
    metrics: tuple[Metric, ...] = ()
    """The metrics of the semantic layer."""


def split(place: str) -> tuple[str, str]:
    """Table and column of ``table.column``; a table's name may hold a point.

    >>> split("singers.name")
    ('singers', 'name')
    """
    table, _, column = place.rpartition(".")
    return table, column
