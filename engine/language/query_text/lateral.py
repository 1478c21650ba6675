"""Rewrites a relation in FROM that reads an earlier one into that relation: the common base of such
rewrites.

``FROM t CROSS JOIN UNNEST(t.xs) AS u(v)`` becomes ``FROM (SELECT *, unnest(t.xs) AS v FROM t) AS
t``, and what names ``u`` names ``t``. DataFusion 55 has no plan for the first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import (
    Query,
    Reader,
    Select,
    Source,
    rewrite_in_rounds,
)
from blendfusion.udfs.declare.arguments import quoted_name

Columns = Callable[[str, str], Sequence[str] | None]
"""The names of the columns of a relation, given a WITH clause and the relation as it stands in
FROM; None if they are unknown."""

_NO_COLUMNS = ("CASE", "WHEN", "THEN", "ELSE", "END", "NULL", "TRUE", "FALSE", "AS")


@dataclass(frozen=True, slots=True)
class Place:
    """One source of one SELECT in a text; ``whole`` is where its columns may be named."""

    reader: Reader
    select: Select
    source: Source
    whole: Query | Select
    columns: Callable[[str], Sequence[str] | None]


Rewrite: TypeAlias = Callable[[Place], "str | None"]
"""The text without a source of a certain kind; None if it is of another."""


def rewrite_sources(sql: str, columns: Columns, rewrite: Rewrite) -> str:
    """``sql`` with all sources rewritten that ``rewrite`` rewrites, one after the other."""

    def rewrite_one(reader: Reader) -> str | None:
        texts = map(rewrite, _places(reader, columns))
        return next((text for text in texts if text is not None), None)

    return rewrite_in_rounds(sql, rewrite_one)


def _places(reader: Reader, columns: Columns) -> Iterator[Place]:
    for query, scope in reader.scopes():
        for select in query.branches:
            if isinstance(select, Select):
                whole = query if len(query.branches) == 1 else select
                known = partial(columns, scope.text(reader))
                for source in select.sources:
                    yield Place(reader, select, source, whole, known)


@dataclass(slots=True)
class Expansion:
    """A source that makes several rows of each row of a relation beside it."""

    start: int
    """The first and the last token of its argument."""
    end: int
    names: tuple[str, ...]
    """The columns that it brings."""
    keeps_empty: bool
    """A row of which it makes none stays, as in a LEFT JOIN."""
    condition: tuple[int, int] | None
    """The join condition: the tokens behind ON."""


class Rewriting(ABC):
    """The rewriting of a source that reads a relation beside it."""

    def __init__(self, place: Place) -> None:
        self.reader = place.reader
        self.select = place.select
        self.source = place.source
        self.whole = place.whole
        self.columns = place.columns

    @abstractmethod
    def expansion(self) -> Expansion | None:
        """The expanded source; None if it is not to be rewritten."""

    @abstractmethod
    def relation(
        self, what: Expansion, owner: str, known: Sequence[str], inside: Sequence[str]
    ) -> str:
        """A query of the columns ``known`` of the relation ``owner``, and after them those that
        ``what`` brings, called ``inside``."""

    def text(self) -> str | None:
        """The query without this source in FROM; None if it is another, or not understood."""
        what = self.expansion()
        owner = self._owner(what) if what is not None else None
        if what is None or owner is None:
            return None
        alias = self.alias_of(owner)
        known = self._columns_of(owner)
        if alias is None or known is None:
            return None
        called = self.alias_of(self.source) or ""
        if called and self._is_shadowed(called):
            return None
        inside = {name: name if name not in known else f"{called}.{name}" for name in what.names}
        for name, new in inside.items():
            if new in known or (new != name and self._is_bare(name)):
                return None
        edits = self._references(called, alias, inside)
        stars = self._stars(owner, alias, known, list(inside.values()))
        if stars is None:
            return None
        owner_text = self.reader.source_text(owner.start, owner.stop)
        query = self.relation(what, owner_text, known, list(inside.values()))
        relation = f"({query}) AS {quoted_name(alias)}"
        if what.condition is not None:
            condition = self.reader.edit(edits, *what.condition)
            relation = f"(SELECT * FROM {relation} WHERE {condition}) AS {quoted_name(alias)}"
            if self.columns(relation) is None:  # it reads more than this relation
                return None
        gone = self.source.on[1] if self.source.on else self.source.stop
        edits += stars
        edits.append((owner.start, owner.stop, relation))
        edits.append((self.source.before, gone, ""))
        return self.reader.edit(edits)

    # --- what it is ------------------------------------------------------------------------------

    def join_form(self) -> tuple[bool, tuple[int, int] | None] | None:
        """How the source is joined: whether rows without any of it stay, and the condition; None
        for a join that has no such form."""
        source = self.source
        words = [w for w in source.words if w not in ("INNER", "OUTER")]
        keeps_empty = words == ["LEFT", "JOIN"]
        if words == ["JOIN"] or keeps_empty:
            if source.on is None or self.reader.word(source.on[0]) != "ON":
                return None
            if self.reader.words[slice(*source.on)] == ["ON", "TRUE"]:
                return keeps_empty, None
            return None if keeps_empty else (False, (source.on[0] + 1, source.on[1]))
        if words not in ([""], [","], ["CROSS", "JOIN"]) or source.on:
            return None
        return False, None

    def _owner(self, what: Expansion) -> Source | None:
        """The relation beside it that the source reads; None for no relation or several."""
        if len(self.source.columns) > 1:
            return None
        before = self.select.sources[: self.select.sources.index(self.source)]
        if any("NATURAL" in s.words for s in self.select.sources):
            return None
        owners = []
        for at in range(what.start, what.end):
            follows = self.reader.kind(at - 1) == TokenType.DOT
            called = self.reader.kind(at + 1) == TokenType.L_PAREN
            if follows or called or not self._is_identifier(at):
                continue
            found = self._owner_of(at, before)
            if found is None:
                return None
            owners.append(found)
        if not owners or any(o is not owners[0] for o in owners):
            return None
        owner = owners[0]
        between = before[before.index(owner) + 1 :]
        padded = {"LEFT", "FULL"} & set(owner.words) or any(
            {"RIGHT", "FULL"} & set(s.words) for s in between
        )
        if padded or owner.lateral or owner.group is not None:
            return None
        return owner

    def _owner_of(self, at: int, before: Sequence[Source]) -> Source | None:
        name = self.reader.name(at)
        if self.reader.kind(at + 1) == TokenType.DOT:
            for source in before:
                if self.alias_of(source) == name:
                    return source
        if len(before) == 1:
            return before[0]
        having = [s for s in before if name in (self._columns_of(s) or ())]
        return having[0] if len(having) == 1 else None

    def _is_shadowed(self, name: str) -> bool:
        """True if an inner query has a relation of this name, which its columns may mean."""
        return any(
            self.alias_of(source) == name
            for below in self.select.inner
            for query, _ in below.walk()
            for branch in query.branches
            if isinstance(branch, Select)
            for source in branch.sources
        )

    def _is_bare(self, name: str) -> bool:
        """True if a column of this name is written without its relation, though there are two:
        DataFusion says so."""
        relations = [range(s.start, s.stop) for s in self.select.sources]
        return any(
            self.whole.start < at < self.whole.end and not any(at in r for r in relations)
            for at in self.reader.unqualified_places(name)
        )

    # --- what changes ----------------------------------------------------------------------------

    def _references(
        self, called: str, alias: str, inside: Mapping[str, str]
    ) -> list[tuple[int, int, str]]:
        """``u.v`` as a column of the relation that it came from."""
        reader, edits = self.reader, []
        for at in range(self.whole.start, self.whole.end - 2):
            mine = self._is_identifier(at) and reader.name(at) == called
            if (
                not mine
                or reader.kind(at + 1) != TokenType.DOT
                or reader.kind(at - 1) == TokenType.DOT
            ):
                continue
            star = reader.kind(at + 2) == TokenType.STAR
            named = list(inside) if star else [reader.name(at + 2)]
            texts = [
                self._reference(at, alias, name, inside[name]) for name in named if name in inside
            ]
            if texts:
                edits.append((at, at + 3, ", ".join(texts)))
        return edits

    def _reference(self, at: int, alias: str, name: str, inside: str) -> str:
        text = _list_columns(alias, [inside])
        if inside != name and self.reader.is_item(at, at + 3) and self._is_only(at, name):
            text += f" AS {quoted_name(name)}"
        return text

    def _stars(
        self, owner: Source, alias: str, known: Sequence[str], inside: Sequence[str]
    ) -> list[tuple[int, int, str]] | None:
        """Edits that replace ``*`` and ``t.*`` by their columns; None if these are unknown."""
        edits, reader = [], self.reader
        for at in range(*self.select.items):
            if reader.kind(at) != TokenType.STAR:
                continue
            if reader.begins_item(at, self.select):
                sources = self.select.sources
                follows = sources.index(self.source) == sources.index(owner) + 1
                if follows:
                    continue
                every = self._every_column(owner, alias, known, inside)
                if every is None or not self.reader.is_item(at, at + 1):
                    return None
                edits.append((at, at + 1, every))
            elif reader.begins_item(at - 2, self.select) and reader.name(at - 2) == alias:
                if not self.reader.is_item(at - 2, at + 1):
                    return None
                edits.append((at - 2, at + 1, _list_columns(alias, known)))
        return edits

    def _every_column(
        self, owner: Source, alias: str, known: Sequence[str], inside: Sequence[str]
    ) -> str | None:
        parts = []
        for source in self.select.sources:
            if source.on and self.reader.word(source.on[0]) == "USING":
                return None
            called: str | None = alias
            names = inside if source is self.source else known
            if source not in (self.source, owner):
                called, names = self.alias_of(source), self._columns_of(source) or ()
            if called is None or not names:
                return None
            parts.append(_list_columns(called, names))
        return ", ".join(parts)

    def _columns_of(self, source: Source) -> Sequence[str] | None:
        return self.columns(self.reader.source_text(source.start, source.stop))

    def _is_only(self, at: int, name: str) -> bool:
        """True if no other item of the select list can have this name: DataFusion tells columns of
        one name apart by their relations, and these are of one relation now."""
        return not any(
            self.reader.kind(other) == TokenType.STAR
            or (self._is_identifier(other) and self.reader.name(other) == name)
            for other in range(*self.select.items)
            if not at <= other < at + 3
        )

    def alias_of(self, source: Source) -> str | None:
        """The name by which a relation's columns are qualified."""
        return self.reader.name_of(source)

    def _is_identifier(self, at: int) -> bool:
        return self.reader.is_name(at) and self.reader.word(at) not in _NO_COLUMNS


def _list_columns(relation: str, names: Sequence[str]) -> str:
    return ", ".join(f"{quoted_name(relation)}.{quoted_name(name)}" for name in names)
