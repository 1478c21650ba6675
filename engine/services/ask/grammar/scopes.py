"""The FROM clauses of a grammar: tables alone, and joined along the catalogue's keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from blendfusion.services.ask.schema.catalog import Catalog, Table, split
from blendfusion.services.ask.schema.keys import Key

MOST_SCOPES = 100
"""Joins beyond this many are left out, long ones first, and those of a large catalogue beyond twice
as many. llguidance has room for 65,000 symbols."""
_INITIAL = 1
"""Characters of an alias by a table's first letter."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table of a FROM clause. ``alias`` is '' if its own name stands before its columns."""

    table: Table
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Join:
    """``left_column`` of the source at ``left`` equals ``right_column`` of the next source."""

    left: int
    left_column: str
    right_column: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Sources, joined each to an earlier one."""

    sources: tuple[Source, ...]
    joins: tuple[Join, ...] = ()


def scopes(catalog: Catalog, *, aliased: bool) -> list[Scope]:
    """Every table alone, pairs and triples of tables along keys, in each order. ``aliased``: with
    ``T1``, ``T2``, …, with first letters and with the tables' names; else with one of these."""
    found: list[Scope] = []
    most = len(catalog.tables) * (3 if aliased else 1) + MOST_SCOPES * (1 if aliased else 2)
    for table in catalog.tables:
        found.append(Scope((Source(table),)))
        if aliased:
            found += [Scope((Source(table, a),)) for a in ("T1", _initials([table])[0])]
    for path, joins in _paths(catalog, triples=aliased):
        for names in _aliases(path, aliased=aliased):
            sources = tuple(map(Source, path, names))
            if len(found) < most:
                found.append(Scope(sources, joins))
    return found


def _aliases(path: Sequence[Table], *, aliased: bool) -> Iterator[Sequence[str]]:
    yield [""] * len(path)
    if aliased:
        yield [f"T{place}" for place in range(1, len(path) + 1)]
        yield _initials(path)


def _initials(path: Sequence[Table]) -> list[str]:
    """An alias for each table by its first letter, with a number where two would be equal."""
    letters = [(t.name.lstrip('_"')[:_INITIAL] or "t").lower() for t in path]
    letters = [letter if letter.isascii() and letter.isalpha() else "t" for letter in letters]
    return [
        f"{letter}{place}" if letters.count(letter) > 1 else letter
        for place, letter in enumerate(letters, 1)
    ]


def _paths(catalog: Catalog, *, triples: bool) -> Iterator[tuple[list[Table], tuple[Join, ...]]]:
    """Pairs, then triples."""
    tables = {table.name: table for table in catalog.tables}
    edges = [edge for key in catalog.keys for edge in _both_ways(key)]
    for (a, own), (b, other) in edges:
        yield [tables[a], tables[b]], (Join(0, own, other),)
    if not triples:
        return
    for first, second in permutations(edges, 2):
        (a, a_column), (b, b_column) = first
        (source, own), (c, other) = second
        if c not in (a, b) and source in (a, b):
            joins = Join(0, a_column, b_column), Join((a, b).index(source), own, other)
            yield [tables[a], tables[b], tables[c]], joins


def _both_ways(key: Key) -> Iterable[tuple[tuple[str, str], tuple[str, str]]]:
    left, right = split(key.left), split(key.right)
    return (left, right), (right, left)
