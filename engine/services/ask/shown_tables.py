"""Chooses the tables and columns that a model sees where not all of them fit its window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log

import numpy as np
import numpy.typing as npt

from blendfusion.services.ask.links import STOP_WORDS, Link, name_stems, stem, words_of
from blendfusion.services.ask.prompt import describe
from blendfusion.services.ask.schema.catalog import Catalog, Column, Table, split
from blendfusion.services.ask.word_vectors import similarities

_CHARACTERS_PER_TOKEN = 3
_RESERVED = 700
"""Tokens of the window for instructions, problem and query."""
_LARGEST_SHARE = 0.5
"""The share of the room that one table of many takes at most; the rest of its columns is left out.
"""
_OF_TABLE = 2.0
"""The weight of a word that names a table, where one that names a column has at most 1."""
_OF_VALUE = 1.5
"""The weight of a linked value, times the score of the link (2 for a whole value)."""
_LEAST = 0.15
"""The lowest similarity of two words that counts."""


@dataclass(frozen=True, slots=True)
class VisibleCatalog:
    """The catalogue that a model sees, and a sentence on what it does not see; '' if it sees
    all."""

    catalog: Catalog
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class _Words:
    """The stems of the words of a table's name, and those of its notes, columns and metrics."""

    name: frozenset[str]
    others: frozenset[str]


class TableChoice:
    """The words of a catalogue, by which its tables are compared with questions."""

    def __init__(self, catalog: Catalog, window: int) -> None:
        """``window``: the tokens that fit the model."""
        self._catalog = catalog
        self._room = max(0, window - _RESERVED) * _CHARACTERS_PER_TOKEN

    def visible(
        self, text: str, links: Sequence[Link], kept: Collection[str] = (), last: str = ""
    ) -> VisibleCatalog:
        """The tables ``kept`` of the query ``last``, then those most like ``text`` or with a linked
        value, as many as fit the window and at least one, in the order of the catalogue. A table
        that takes more than half of the room keeps its keys, linked columns and the columns most
        like both texts."""
        tables = self._catalog.tables
        if sum(self._sizes.values()) <= self._room:
            return VisibleCatalog(self._catalog)
        words = _content(text)
        scores = self._scores(words, links)
        ranked = sorted(tables, key=lambda t: (t.name not in kept, -scores[t.name]))
        found = {
            table.name: table for table in self._fitting(ranked, words | _content(last), links)
        }
        ordered = tuple(found[table.name] for table in tables if table.name in found)
        keys = tuple(k for k in self._catalog.keys if _holds(found, k.left, k.right))
        metrics = tuple(m for m in self._catalog.metrics if m.table.lower() in _fold(found))
        cut = replace(self._catalog, tables=ordered, keys=keys, metrics=metrics)
        return VisibleCatalog(cut, _left_out(cut, self._catalog))

    def _fitting(
        self, ranked: Iterable[Table], words: frozenset[str], links: Sequence[Link]
    ) -> Iterator[Table]:
        room = self._room
        most = self._room if len(self._catalog.tables) == 1 else _LARGEST_SHARE * self._room
        first = True
        for table in ranked:
            size = self._sizes[table.name]
            if size > most:
                table = self._narrow(table, most, words, links)
                size = len(describe(table, ()))
            room -= size
            if room >= 0 or first:
                yield table
            first = False

    def _scores(self, words: frozenset[str], links: Sequence[Link]) -> dict[str, float]:
        """The likeness of each table to ``words``."""
        near = self._near(words)
        values: dict[str, float] = {}
        for link in links:
            table = split(link.column)[0]
            values[table] = max(values.get(table, 0.0), _OF_VALUE * link.score)
        return {
            name: values.get(name, 0.0) + sum(near.get(w, {}).get(name, 0.0) for w in words)
            for name in self._words
        }

    def _near(self, words: frozenset[str]) -> dict[str, dict[str, float]]:
        """The likeness of each word to the tables, by name: exact for a word of the catalogue, by
        the vectors of words for any other."""
        unknown = sorted(word for word in words if word not in self._holders)
        found = {word: self._exact(word) for word in words if word in self._holders}
        names = list(self._holders)
        close = similarities(unknown, names)
        if close is not None:
            for word, row in zip(unknown, close, strict=True):
                found[word] = self._similar(row, names)
        return found

    def _exact(self, word: str) -> dict[str, float]:
        rarity = log(1 + len(self._words) / self._holders[word]) / log(1 + len(self._words))
        return {
            name: _OF_TABLE if word in own.name else rarity
            for name, own in self._words.items()
            if word in own.name or word in own.others
        }

    def _similar(self, row: npt.NDArray[np.float32], names: Sequence[str]) -> dict[str, float]:
        close = {name: float(s) for name, s in zip(names, row, strict=True) if s >= _LEAST}
        return {
            table: max(
                (close.get(word, 0.0) * (_OF_TABLE if word in own.name else 1.0) for word in words),
                default=0.0,
            )
            for table, own in self._words.items()
            if (words := own.name | own.others)
        }

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """The characters of each table's description."""
        return {table.name: len(describe(table, ())) for table in self._catalog.tables}

    @cached_property
    def _words(self) -> dict[str, _Words]:
        return {table.name: self._of_table(table) for table in self._catalog.tables}

    def _of_table(self, table: Table) -> _Words:
        own = [str(m) for m in self._catalog.metrics if m.table.lower() == table.name.lower()]
        columns = (f"{column.name}_{column.note}" for column in table.columns)
        others = {w for text in (table.note, *columns, *own) for w in name_stems(text)}
        return _Words(frozenset(name_stems(table.name)), frozenset(others - STOP_WORDS))

    @cached_property
    def _holders(self) -> Counter[str]:
        """The number of tables that have a word."""
        return Counter(word for own in self._words.values() for word in own.name | own.others)

    def _narrow(
        self, table: Table, most: float, words: frozenset[str], links: Sequence[Link]
    ) -> Table:
        """The table with as many columns as fit ``most`` characters."""
        keys = {side for key in self._catalog.keys for side in (key.left, key.right)}
        linked = {link.column for link in links}
        stems = [name_stems(f"{column.name}_{column.note}") for column in table.columns]
        unknown = sorted(words - {word for own in stems for word in own})
        names = sorted({word for own in stems for word in own})
        close = similarities(unknown, names)
        best = {} if close is None or not unknown else dict(zip(names, close.max(0), strict=True))

        def likeness(at: int) -> float:
            place = f"{table.name}.{table.columns[at].name}"
            near = max((float(best.get(word, 0.0)) for word in stems[at]), default=0.0)
            exact = len(words & stems[at])
            return 2.0 * (place in keys) + 2.0 * (place in linked) + exact + near

        order = sorted(range(len(table.columns)), key=lambda at: (-likeness(at), at))
        kept: list[int] = []
        room = most - len(describe(replace(table, columns=(), left_out=len(order)), ()))
        for at in order:
            room -= _size(table.columns[at])
            if room < 0 and kept:
                break
            kept.append(at)
        columns = tuple(table.columns[at] for at in sorted(kept))
        return replace(table, columns=columns, left_out=len(order) - len(columns))


def _size(column: Column) -> int:
    return len(describe(Table("", (column,)), ())) - len(describe(Table("", ()), ())) + 2


def _content(text: str) -> frozenset[str]:
    """The stems of the words of a question that may name something."""
    return frozenset(
        stem(word)
        for word in words_of(text)
        if len(word) > 2 and word not in STOP_WORDS and not word.isdigit()
    )


def _holds(tables: dict[str, Table], *places: str) -> bool:
    """Whether the columns ``table.column`` are all left."""
    return all(
        table in tables and any(column == own.name for own in tables[table].columns)
        for table, column in map(split, places)
    )


def _fold(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}


def _left_out(shown: Catalog, whole: Catalog) -> str:
    """A sentence on the tables and columns that a model did not see."""
    parts = []
    if len(shown.tables) < len(whole.tables):
        parts.append(f"{len(shown.tables):,} of {len(whole.tables):,} tables")
    for table in shown.tables:
        if table.left_out:
            of = len(table.columns) + table.left_out
            parts.append(f"{len(table.columns):,} of {of:,} columns of {table.name}")
    if not parts:
        return ""
    return (
        f"The model saw {' and '.join(parts)}, those most like the question: tables=[…] names the "
        "tables to show."
    )
