"""A query whose calls have types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blendfusion.language.query_text.source_map import Translation
from blendfusion.udfs.declare.call import Call


@dataclass(frozen=True, slots=True)
class TypedQuery:
    """A query whose calls are functions; ``calls`` are what the functions stand for, and
    ``written`` tells, by their names, the ways in which the user wrote them."""

    translation: Translation
    calls: tuple[Call, ...] = ()
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    beside_columns: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The calls that the query puts beside columns, of types not known here: their names, and their
    numbers in the text."""
    unread: tuple[str, ...] = ()
    """The parts of the query that say nothing of the types of answers."""
    sites: tuple[Call, ...] = ()
    """The call of each place in the text, in order."""
    values: tuple[tuple[str, ...], ...] = ()
    """The values of these, as they are written."""
    doubts: tuple[str, ...] = ()
    """Probable mistakes, each as a sentence: comparisons that no answer meets, names of columns in
    single quotes."""

    @property
    def sql(self) -> str:
        return self.translation.sql
