"""Names in another letter case than a table has them: the names that were meant.

DataFusion folds names without quotes to lower case, so that ``SELECT Name`` finds no column
``Name``. Most other systems compare names without regard to case. A query that DataFusion refuses
is read here once more: each name in the scope of its SELECT, that is among the columns of the
tables, derived tables and common table expressions that this SELECT and those around it read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.error_places import either
from blendfusion.language.query_text.query_tree import Query, Reader, Select, Source
from blendfusion.language.query_text.source_map import Translation, edit
from blendfusion.language.query_text.token_tree import RESERVED
from blendfusion.udfs.declare.arguments import quoted_name


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its exact name; ``type`` is None where it is not known."""

    name: str
    type: pa.DataType | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table by the names of its path, as it was written, but exactly."""

    path: tuple[str, ...]
    columns: tuple[Column, ...]


Tables = Callable[[Sequence[str]], Sequence[Table]]
"""The tables that a path means, as DataFusion reads it: the one of exactly these names, or else all
that are equal but for case; none for a path that means no table."""


def in_any_case(text: str, tables: Tables) -> Translation | None:
    """``text`` with each name that differs from a table's, a column's or a field's in letter case
    only in that spelling; None if there is no such name.

    Raises QueryError, with the span, for a name that is equal to two columns but for case."""
    reader = Reader(text)
    found = _Names(reader, tables).found
    edits = [(*reader.span(at, at + 1), quoted_name(name)) for at, name in found.items()]
    return edit(text, edits) if edits else None


@dataclass(slots=True)
class _Relation:
    """A relation that a SELECT reads by one name. ``path`` are the names that may qualify its
    columns."""

    path: tuple[str, ...]
    columns: list[Column] = field(default_factory=list)


@dataclass(slots=True)
class _Scope:
    """The relations that one SELECT reads, and the columns that it gives."""

    relations: list[_Relation] = field(default_factory=list)
    outputs: list[Column] = field(default_factory=list)


class _Names:
    """The tokens of one text that are names in another letter case, with the exact names."""

    def __init__(self, reader: Reader, tables: Tables) -> None:
        self.reader = reader
        self.tables = tables
        self.found: dict[int, str] = {}
        self._seen: set[int] = set()
        """Tokens whose meaning is known."""
        for outer in reader.outer:
            self._query(outer, {}, [])
        self._outside()

    # --- scopes -----------------------------------------------------------------------------------

    def _query(
        self, query: Query, common: Mapping[str, _Relation], outer: Sequence[_Scope]
    ) -> list[Column]:
        """The columns that a query gives, when all of its names are resolved."""
        visible = dict(common)
        for one in query.common:
            name = self.reader.name(one.name)
            own = _Relation((name,))
            recursive = {**visible, name.lower(): own} if query.recursive else visible
            own.columns = self._rename(one.name + 1, self._query(one.query, recursive, outer))
            visible[name.lower()] = own
            self._seen.add(one.name)
        scope, outputs = _Scope(), None
        for branch in query.branches:
            if isinstance(branch, Query):
                columns = self._query(branch, visible, outer)
            else:
                scope = self._select(branch, visible, outer)
                columns = scope.outputs
            outputs = columns if outputs is None else outputs
        tail = max((branch.end for branch in query.branches), default=query.start)
        alone = len(query.branches) == 1
        ordered = _Scope(scope.relations if alone else [], outputs or [])
        for inner in query.inner:
            self._query(inner, visible, [ordered, *outer])
        self._resolve(range(tail, query.end), query.inner, [ordered, *outer], outputs_first=True)
        return outputs or []

    def _rename(self, at: int, columns: list[Column]) -> list[Column]:
        """The columns of ``name(a, b)``, whose list begins at ``at``."""
        if not self.reader.opens(at):
            return columns
        places = [a for a, _ in self.reader.parts(at + 1, self.reader.close[at])]
        self._seen.update(places)
        names = [self.reader.name(place) for place in places]
        types = [column.type for column in columns] + [None] * len(names)
        return [Column(name, kind) for name, kind in zip(names, types, strict=False)]

    def _select(
        self, select: Select, common: Mapping[str, _Relation], outer: Sequence[_Scope]
    ) -> _Scope:
        scope = _Scope()
        nested = list(select.below())
        for source in self.reader.sources(select):
            scope.relations.append(self._relation(source, common, [scope, *outer]))
        for inner in select.inner:
            self._query(inner, common, [scope, *outer])
        self._aliases(select)
        scopes = [scope, *outer]
        self._resolve(range(select.items[0], select.items[1]), nested, scopes)
        scope.outputs = self._outputs(select, scope)
        self._resolve(range(select.items[1], select.end), nested, scopes)
        return scope

    def _relation(
        self, source: Source, common: Mapping[str, _Relation], outer: Sequence[_Scope]
    ) -> _Relation:
        """A relation of FROM by its alias, or by its own names."""
        reader = self.reader
        made = _Relation(())
        if source.query is not None:
            made.columns = self._query(source.query, common, outer)
        elif source.kind == "table":
            made = self._table(range(source.start, source.end, 2), common)
        if source.alias is not None:
            self._seen.add(source.alias)
            made = _Relation((reader.name(source.alias),), made.columns)
            if source.columns:
                made.columns = self._rename(source.alias + 1, made.columns)
        return made

    def _table(self, places: Sequence[int], common: Mapping[str, _Relation]) -> _Relation:
        """The relation whose names stand at ``places``."""
        path = tuple(self.reader.name(at) for at in places)
        self._seen.update(places)
        own = common.get(path[0].lower()) if len(path) == 1 else None
        if own is not None:
            self._spell(places[0], [own.path[0]])
            return _Relation(own.path, own.columns)
        found = self.tables(path)
        if not found:
            return _Relation(path)
        if len(found) > 1:
            raise self._ambiguous(places[-1], list(dict.fromkeys(t.path[-1] for t in found)))
        for at, name in zip(places, found[0].path, strict=True):
            self._spell(at, [name])
        return _Relation(found[0].path, list(found[0].columns))

    # --- the columns that a SELECT gives ----------------------------------------------------------

    def _aliases(self, select: Select) -> None:
        for start, stop in self.reader.items(select):
            alias = self._alias(start, stop)
            if alias is not None:
                self._seen.add(alias)

    def _alias(self, start: int, stop: int) -> int | None:
        """Where an item's alias stands; None for an item without one."""
        reader, last = self.reader, stop - 1
        if stop - start < 2 or not self._is_name(last):
            return None
        if reader.word(last - 1) == "AS":
            return last
        ends = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.NUMBER, TokenType.STRING)
        before = reader.kind(last - 1) in ends or reader.word(last - 1) == "END"
        return last if before or self._is_name(last - 1) else None

    def _outputs(self, select: Select, scope: _Scope) -> list[Column]:
        reader, found = self.reader, list[Column]()
        for start, stop in reader.items(select):
            if reader.kind(start) == TokenType.STAR:
                found += [column for one in scope.relations for column in one.columns]
                continue
            if reader.kind(stop - 1) == TokenType.STAR and reader.kind(stop - 2) == TokenType.DOT:
                name = self._exact(stop - 3)
                found += [
                    c for one in scope.relations if one.path[-1:] == (name,) for c in one.columns
                ]
                continue
            alias = self._alias(start, stop)
            end = reader.column_end(start)
            known = self._type(start, end, scope) if end is not None else None
            if alias is not None:
                plain = end is not None and end >= stop - 2
                found.append(Column(reader.name(alias), known if plain else None))
            elif end == stop:
                found.append(Column(self._exact(stop - 1), known))
        return found

    def _exact(self, at: int) -> str:
        """The name at ``at``, as it will be spelled."""
        return self.found.get(at, self.reader.name(at))

    def _type(self, start: int, end: int, scope: _Scope) -> pa.DataType | None:
        names = [self._exact(at) for at in range(start, end, 2)]
        for relation in scope.relations:
            for skipped in range(len(relation.path) + 1):
                if skipped and tuple(names[:skipped]) != relation.path[-skipped:]:
                    continue
                rest = names[skipped:]
                columns = [c for c in relation.columns if rest and c.name == rest[0]]
                if columns:
                    return _field(columns[0].type, rest[1:])
        return None

    # --- names ------------------------------------------------------------------------------------

    def _is_name(self, at: int) -> bool:
        reader = self.reader
        return reader.is_name(at) and reader.word(at) not in RESERVED

    def _is_other(self, at: int) -> bool:
        """A function, a type behind AS or ``::``, what makes a literal of the text behind it, or
        the part that EXTRACT takes."""
        reader = self.reader
        behind, quoted = reader.kind(at + 1), reader.kind(at) == TokenType.IDENTIFIER
        typed = reader.kind(at - 1) == TokenType.DCOLON or reader.word(at - 1) == "AS"
        called = behind == TokenType.L_PAREN and not quoted
        extracted = reader.word(at + 1) == "FROM" and reader.word(at - 2) == "EXTRACT"
        named = behind == TokenType.FARROW
        return typed or called or extracted or named or behind == TokenType.STRING

    def _resolve(
        self,
        region: range,
        nested: Iterable[Query],
        scopes: Sequence[_Scope],
        *,
        outputs_first: bool = False,
    ) -> None:
        """Resolve the columns among some tokens, but for those of the queries inside."""
        skipped = {at for query in nested for at in range(query.start, query.end)}
        at = region.start
        while at < region.stop:
            end = at + 1
            free = at not in skipped and at not in self._seen
            if free and self._is_name(at) and self.reader.kind(at - 1) != TokenType.DOT:
                places = list(self._chain(at))
                end = places[-1] + 1
                if not self._is_other(places[-1]) and not self._is_other(at):
                    self._resolve_chain(places, scopes, outputs_first=outputs_first)
            at = end

    def _chain(self, at: int) -> Iterator[int]:
        """The places of ``a.b.c``."""
        yield at
        while self.reader.kind(at + 1) == TokenType.DOT and self.reader.is_name(at + 2):
            at += 2
            yield at

    def _resolve_chain(
        self, places: Sequence[int], scopes: Sequence[_Scope], *, outputs_first: bool
    ) -> None:
        """Resolve a column with its relation before it and fields behind it."""
        self._seen.update(places)
        for scope in scopes:
            if len(places) > 1 or self.reader.kind(places[0] + 1) == TokenType.DOT:
                qualified = self._qualify(places, scope)
                if qualified is not None:
                    relation, count = qualified
                    self._column(places[count:], [relation.columns])
                    return
            inner = scope is scopes[0]
            groups = [[c for one in scope.relations for c in one.columns]]
            if inner and scope.outputs:
                groups = [scope.outputs, *groups] if outputs_first else [*groups, scope.outputs]
            if self._column(places, groups):
                return

    def _qualify(self, places: Sequence[int], scope: _Scope) -> tuple[_Relation, int] | None:
        """The relation that the first of the names qualify, and how many of them."""
        spelled = [self.reader.name(at) for at in places]
        for equal in (str, str.lower):
            for relation in scope.relations:
                for count in range(1, len(relation.path) + 1):
                    given = [equal(name) for name in spelled[:count]]
                    if given == [equal(name) for name in relation.path[-count:]]:
                        for at, name in zip(places, relation.path[-count:], strict=False):
                            self._spell(at, [name])
                        return relation, count
        return None

    def _column(self, places: Sequence[int], groups: Sequence[list[Column]]) -> bool:
        """Spell a column, and the fields behind it; False if no group has it."""
        if not places:
            return True
        name = self.reader.name(places[0])
        for columns in groups:
            if any(column.name == name for column in columns):
                return self._fields(places, name, columns)
        for columns in groups:
            same = list(dict.fromkeys(c.name for c in columns if c.name.lower() == name.lower()))
            if same:
                self._spell(places[0], same)
                return self._fields(places, same[0], columns)
        return False

    def _fields(self, places: Sequence[int], name: str, columns: Iterable[Column]) -> bool:
        kind = next(column.type for column in columns if column.name == name)
        for at in places[1:]:
            if kind is None or not pa.types.is_struct(kind):
                return True
            names = [kind.field(i).name for i in range(kind.num_fields)]
            spelled = self.reader.name(at)
            same = [n for n in names if n == spelled]
            same = same or [n for n in names if n.lower() == spelled.lower()]
            if not same:
                return True
            self._spell(at, same)
            kind = kind.field(same[0]).type
        return True

    def _spell(self, at: int, names: Sequence[str]) -> None:
        if len(names) > 1:
            raise self._ambiguous(at, names)
        if self.reader.name(at) != names[0]:
            self.found[at] = names[0]

    def _ambiguous(self, at: int, names: Sequence[str]) -> Exception:
        return self.reader.refusal(at, *either(self.reader.tokens[at].text, names))

    # --- statements that are no queries -----------------------------------------------------------

    def _outside(self) -> None:
        """Names outside of every SELECT: of INSERT, UPDATE, DELETE, DESCRIBE, and of a text whose
        queries are not understood. They mean the columns of all tables that the text names."""
        reader, scope = self.reader, _Scope()
        places = [at for at in range(len(reader.tokens)) if at not in self._seen]
        for at in places:
            if at in self._seen or not self._is_name(at) or not _is_table(reader, at):
                continue
            relation = self._table(list(self._chain(at)), {})
            last = [*self._chain(at)][-1]
            alias = last + 1 + (reader.word(last + 1) == "AS")
            scope.relations.append(relation)
            if (
                alias < len(reader.tokens)
                and self._is_name(alias)
                and reader.word(alias) not in _CLAUSES
            ):
                self._seen.add(alias)
                scope.relations.append(_Relation((reader.name(alias),), relation.columns))
        if scope.relations:
            self._resolve(range(len(reader.tokens)), (), [scope])


def _field(kind: pa.DataType | None, names: Sequence[str]) -> pa.DataType | None:
    """The type of a field in a type of structs."""
    for name in names:
        if kind is None or not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return kind


_OF_TABLES = {"FROM", "JOIN", "INTO", "UPDATE", "TABLE"}
_CLAUSES = _OF_TABLES | {
    *("USING", "SELECT", "ON", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "VALUES", "SET"),
    *("WITH", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "DESCRIBE"),
}


def _is_table(reader: Reader, at: int) -> bool:
    """A name stands behind FROM, JOIN and the like."""
    if reader.kind(at - 1) == TokenType.DOT or reader.opens(at + 1):
        return reader.word(at - 1) in ("INTO",)
    depth = 0
    for before in range(at - 1, -1, -1):
        depth += reader.kind(before) == TokenType.R_PAREN
        depth -= reader.kind(before) == TokenType.L_PAREN
        if depth < 0 and reader.word(before - 1) not in _OF_TABLES:
            return False
        if depth <= 0 and reader.word(before) in _CLAUSES | {"DESCRIBE"}:
            own = reader.word(before) in _OF_TABLES or reader.word(before) == "DESCRIBE"
            apart = before == at - 1 or reader.kind(at - 1) in (TokenType.COMMA, TokenType.L_PAREN)
            return own and apart
    return False
