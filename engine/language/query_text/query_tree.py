"""The queries of a text, with their common table expressions, branches and relations.

They are read from tokens, not from a syntax tree, so that unknown syntax stays as it is. All
positions are those of tokens; an end is one past the last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.language.query_text.tokenizer import nesting

_SET_OPERATORS = {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
_TAIL = {"ORDER", "LIMIT", "OFFSET", "FETCH"}
_BEHIND_FROM = {"WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "SORT", "CLUSTER", "DISTRIBUTE"}
_JOIN = {
    *("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "OUTER", "SEMI", "ANTI"),
    "LATERAL",
}
_BEFORE_ITEMS = ("SELECT", "DISTINCT", "ALL")
_MOST_ROUNDS = 32
_NO_ALIAS = {*_SET_OPERATORS, *_TAIL, *_BEHIND_FROM, *_JOIN, "ON", "USING", "TABLESAMPLE", "FOR"}


@dataclass(slots=True)
class Source:
    """One relation of a FROM clause: ``start`` to ``end``, with its alias to ``stop``."""

    kind: str
    """``table``, ``function``, ``query`` for one in parentheses, which belong to it, or ``other``:
    joins in parentheses, VALUES."""
    start: int
    end: int
    stop: int = 0
    before: int = 0
    """Where the comma or the words of the join before it start."""
    words: tuple[str, ...] = ()
    """The comma or the words of the join: ``(',',)``, ``('LEFT', 'JOIN')``; empty for the first
    source."""
    lateral: bool = False
    alias: int | None = None
    columns: tuple[int, ...] = ()
    on: tuple[int, int] | None = None
    """From ON or USING to the next join."""
    query: Query | None = None
    group: Select | None = None
    """The joins in its parentheses, as the sources of a SELECT without items."""


@dataclass(slots=True)
class Select:
    """One SELECT, without ORDER BY and LIMIT."""

    start: int
    end: int
    items: tuple[int, int]
    sources: list[Source] = field(default_factory=list)
    where: tuple[int, int] | None = None
    """From WHERE to the next clause."""
    inner: list[Query] = field(default_factory=list)
    """Queries in its expressions."""

    def below(self) -> Iterator[Query]:
        """The queries right inside this one."""
        yield from self.inner
        for source in self.sources:
            if source.query is not None:
                yield source.query
            if source.group is not None:
                yield from source.group.below()


@dataclass(slots=True)
class Common:
    """A common table expression: from its name to the end of its parentheses."""

    name: int
    end: int
    query: Query


@dataclass(slots=True)
class Query:
    """A query with its WITH, ORDER BY and LIMIT, without parentheses around it."""

    start: int
    end: int
    recursive: bool = False
    common: list[Common] = field(default_factory=list)
    branches: list[Select | Query] = field(default_factory=list)
    """The operands of set operators. A query stands in parentheses."""
    inner: list[Query] = field(default_factory=list)
    """Queries in its ORDER BY and LIMIT."""

    def below(self) -> Iterator[Query]:
        """The queries right inside this one, except for its common table expressions."""
        yield from self.inner
        for branch in self.branches:
            if isinstance(branch, Query):
                yield branch
            else:
                yield from branch.below()

    def walk(self, scope: Scope | None = None) -> Iterator[tuple[Query, Scope]]:
        """This query and all inside it, outer ones first, with the relations in their scopes."""
        scope = scope or Scope()
        for common in self.common:
            yield from common.query.walk(scope)
            scope = scope.and_then(common, recursive=self.recursive)
        yield self, scope
        for query in self.below():
            yield from query.walk(scope)


@dataclass(frozen=True, slots=True)
class Scope:
    """The common table expressions that a query may name."""

    common: tuple[Common, ...] = ()
    recursive: bool = False

    def and_then(self, common: Common, *, recursive: bool) -> Scope:
        return Scope((*self.common, common), self.recursive or recursive)

    def text(self, tree: TokenTree) -> str:
        """The WITH clause that defines them; '' for none."""
        if not self.common:
            return ""
        parts = [tree.source_text(c.name, c.end) for c in self.common]
        return f"WITH {'RECURSIVE ' * self.recursive}{', '.join(parts)} "


class NotUnderstoodError(Exception):
    """The tokens are not what this module expects: nothing is known about the text."""


class Reader(TokenTree):
    """The tokens of one text, and the queries around a place."""

    @cached_property
    def outer(self) -> list[Query]:
        """The outermost queries; none if the text is not understood."""
        end = len(self.tokens)
        while end and self.kind(end - 1) == TokenType.SEMICOLON:
            end -= 1
        semicolons = any(t.token_type == TokenType.SEMICOLON for t in self.tokens[:end])
        try:
            return [] if semicolons or not self.balanced else _Parser(self).inside(0, end)
        except (NotUnderstoodError, RecursionError):
            return []

    @cached_property
    def selects(self) -> list[tuple[int, int, Select, Query]]:
        """Every SELECT with the range of tokens in which its columns are known, and its query."""
        found = []
        for query, _ in self.scopes():
            for branch in query.branches:
                if isinstance(branch, Select):
                    whole = query if len(query.branches) == 1 else branch
                    found.append((whole.start, whole.end, branch, query))
        return found

    def scopes(self) -> Iterator[tuple[Query, Scope]]:
        """Every query, outer ones first, with the relations in its scope."""
        for outer in self.outer:
            yield from outer.walk()

    def around(self, at: int) -> list[tuple[Select, Query]]:
        """The SELECTs around ``at``, the innermost first."""
        holding = [(end - start, s, q) for start, end, s, q in self.selects if start <= at < end]
        return [(s, q) for _, s, q in sorted(holding, key=lambda found: found[0])]

    def visible_tables(self, at: int) -> str:
        """The WITH clause of the common table expressions that are visible behind ``at``; '' if
        there are none."""
        around = [(q.end - q.start, scope) for q, scope in self.scopes() if q.start < at < q.end]
        return min(around, key=lambda found: found[0])[1].text(self) if around else ""

    def unqualified_places(self, name: str) -> Iterator[int]:
        """The positions at which a name stands without a relation, and is no alias."""
        for at in range(len(self.tokens)):
            dots = TokenType.DOT in (self.kind(at - 1), self.kind(at + 1))
            if (
                self.is_name(at)
                and not dots
                and self.word(at - 1) != "AS"
                and self.name(at) == name
            ):
                yield at

    def sources(self, select: Select) -> Iterator[Source]:
        """The relations of a SELECT, those in parentheses too."""
        for source in select.sources:
            if source.group is not None:
                yield from self.sources(source.group)
            else:
                yield source

    def relation(self, name: str, at: int) -> Source | None:
        """The source that ``name`` qualifies at ``at``: in the SELECTs around, else in any."""
        around = [s for s, _ in self.around(at)]
        others = [s for _, _, s, _ in self.selects if not any(s is other for other in around)]
        for select in (*around, *others):
            for source in self.sources(select):
                if self.name_of(source) == name:
                    return source
        return None

    def alias_of(self, source: Source) -> int | None:
        """The place of the name that qualifies a relation's columns; None for a relation without a
        name."""
        if source.alias is not None:
            return source.alias
        return source.end - 1 if source.kind == "table" else None

    def name_of(self, source: Source) -> str | None:
        """The name that qualifies a relation's columns; None for a relation without a name."""
        at = self.alias_of(source)
        return None if at is None else self.name(at)

    def is_item(self, start: int, end: int) -> bool:
        """The tokens are a whole item of a select list, without an alias."""
        for select, _ in self.around(start):
            first, last = select.items
            if first <= start and end <= last:
                ends = end == last or self.kind(end) == TokenType.COMMA
                return ends and self.begins_item(start, select)
        return False

    def begins_item(self, start: int, select: Select) -> bool:
        """An item of the select list begins at ``start``."""
        first, last = select.items
        begins = self.kind(start - 1) == TokenType.COMMA or self.word(start - 1) in _BEFORE_ITEMS
        return first <= start < last and begins and not self.depth(first, start)

    def items(self, select: Select) -> list[tuple[int, int]]:
        """The items of a select list."""
        first, last = select.items
        if self.word(first) in ("DISTINCT", "ALL"):
            first += 1
            if self.word(first) == "ON" and self.opens(first + 1):
                first = self.close[first + 1] + 1
        return self.parts(first, last)

    def reads_bare(self, whole: Query | Select, select: Select, names: Collection[str]) -> bool:
        """True if one of ``names`` may be read in ``whole`` without its relation: ``*`` as an item
        of ``select``, a column anywhere but in its relations and their joins' USING."""
        items = self.items(select)
        if "*" in names and any(self.kind(first) == TokenType.STAR for first, _ in items):
            return True
        skipped: set[int] = set()
        for source in select.sources:
            skipped.update(range(source.start, source.stop))
            if source.on is not None and self.word(source.on[0]) == "USING":
                skipped.update(range(*source.on))
        return any(
            at not in skipped
            and self.name(at) in names
            and self.kind(at) not in (TokenType.STRING, TokenType.STAR)
            and TokenType.DOT not in (self.kind(at - 1), self.kind(at + 1))
            and self.word(at - 1) != "AS"
            for at in range(whole.start, whole.end)
        )

    def conjuncts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The parts of a condition between its outermost ANDs; all of it if it has an OR there."""
        depth, ranges = 0, 0
        ends: list[int] = []
        for at in range(start, end):
            keyword = self.words[at]
            depth += nesting(self.tokens[at]) + (keyword == "CASE") - (keyword == "END")
            if depth == 0 and keyword == "OR":
                ends = []
                break
            if depth == 0 and keyword == "AND" and not ranges:
                ends.append(at)
            ranges += (depth == 0 and keyword == "BETWEEN") - (
                depth == 0 and keyword == "AND" and ranges > 0
            )
        for stop in (*ends, end):
            yield start, stop
            start = stop + 1


class _Parser:
    def __init__(self, tree: TokenTree) -> None:
        self.tokens, self.words, self.close = tree.tokens, tree.words, tree.close

    def _after(self, at: int) -> int:
        """One past the token at ``at``, or past the bracket that it opens."""
        return self.close.get(at, at) + 1

    def _starts_query(self, at: int) -> bool:
        while at < len(self.tokens) and self._opens(at):
            at += 1
        return at < len(self.tokens) and (self.words[at] == "SELECT" or self._is_with(at))

    def _opens(self, at: int) -> bool:
        return self.tokens[at].token_type == TokenType.L_PAREN

    def inside(self, start: int, end: int) -> list[Query]:
        """The queries among the tokens, which are an expression or a statement."""
        found, at = [], start
        while at < end:
            if self.words[at] == "SELECT" or self._is_with(at) or self._is_operand(at, end):
                found.append(self.query(at, end))
                at = end
            elif at in self.close:
                close = self.close[at]
                if self._opens(at) and self._starts_query(at + 1):
                    found.append(self.query(at + 1, close))
                else:
                    found += self.inside(at + 1, close)
                at = close + 1
            else:
                at += 1
        return found

    def _is_with(self, at: int) -> bool:
        """A WITH before common tables, not one of WITH TIME ZONE and the like."""
        if self.words[at] != "WITH" or at + 3 >= len(self.tokens):
            return False
        name = at + 1 + (self.words[at + 1] == "RECURSIVE")
        behind = self._after(name + 1) if self._opens(name + 1) else name + 1
        return behind < len(self.tokens) and self.words[behind] == "AS"

    def _is_operand(self, at: int, end: int) -> bool:
        """Whether a query in parentheses, the first operand of a set operator, begins."""
        if not self._opens(at) or not self._starts_query(at + 1):
            return False
        behind = self._after(at)
        return behind < end and self.words[behind] in _SET_OPERATORS

    def query(self, start: int, end: int) -> Query:
        made = Query(start, end)
        at = start
        if self.words[at] == "WITH":
            at += 1
            made.recursive = self.words[at] == "RECURSIVE"
            at += made.recursive
            at = self._common(made, at, end)
        while True:
            at = self._branch(made, at, end)
            if at >= end or self.words[at] not in _SET_OPERATORS:
                break
            at += 1
            while at < end and self.words[at] in ("ALL", "DISTINCT", "BY", "NAME"):
                at += 1
        made.inner = self.inside(at, end)
        return made

    def _common(self, made: Query, at: int, end: int) -> int:
        while True:
            name = at
            at += 1
            if self._opens(at):
                at = self._after(at)
            while at < end and not self._opens(at):
                at += 1
            if at >= end or not self._starts_query(at + 1):
                raise NotUnderstoodError
            close = self.close[at]
            made.common.append(Common(name, close + 1, self.query(at + 1, close)))
            at = close + 1
            if at >= end:
                raise NotUnderstoodError
            if self.tokens[at].token_type != TokenType.COMMA:
                return at
            at += 1

    def _branch(self, made: Query, at: int, end: int) -> int:
        if at >= end:
            raise NotUnderstoodError
        if self._opens(at):
            close = self.close[at]
            made.branches.append(self.query(at + 1, close))
            return close + 1
        if self.words[at] != "SELECT":  # VALUES, TABLE
            return self._until(at, end, _SET_OPERATORS | _TAIL)
        listed = self._until(at + 1, end, {"FROM", *_BEHIND_FROM, *_SET_OPERATORS, *_TAIL})
        made.branches.append(select := Select(at, listed, (at + 1, listed)))
        select.inner += self.inside(at + 1, listed)
        at = listed
        if at < end and self.words[at] == "FROM":
            at = self._sources(select, at + 1, end)
        stop = self._until(at, end, _SET_OPERATORS | _TAIL)
        if at < stop and self.words[at] == "WHERE":
            select.where = at, self._until(at + 1, stop, _BEHIND_FROM)
        select.inner += self.inside(at, stop)
        select.end = stop
        return stop

    def _until(self, at: int, end: int, words: set[str]) -> int:
        """The first of ``words`` outside of brackets; ``end`` if there is none."""
        while at < end:
            distinct = self.words[at] == "FROM" and self.words[at - 1] == "DISTINCT"
            dotted = self.tokens[at - 1].token_type == TokenType.DOT
            if self.words[at] in words and not distinct and not dotted:
                return at
            at = self._after(at)
        return at

    def _sources(self, select: Select, at: int, end: int) -> int:
        before = at
        names: tuple[str, ...] = ()
        while True:
            at = self._source(select, at, end, before, names)
            start = at
            at = self._until_join(at, end)
            if at > start:
                select.sources[-1].on = (start, at)
                select.inner += self.inside(start, at)
            if at >= end or (
                self.words[at] not in _JOIN and self.tokens[at].token_type != TokenType.COMMA
            ):
                return at
            before = at
            at += 1
            while at < end and self.words[at] in _JOIN - {"LATERAL"}:
                at += 1
            names = tuple(self.words[before:at])

    def _until_join(self, at: int, end: int) -> int:
        stops = _JOIN | _BEHIND_FROM | _SET_OPERATORS | _TAIL
        while at < end:
            called = at + 1 < end and self._opens(at + 1) and self.words[at] in ("LEFT", "RIGHT")
            if self.tokens[at].token_type == TokenType.COMMA:
                return at
            if self.words[at] in stops and not called:
                return at
            at = self._after(at)
        return at

    def _source(
        self, select: Select, at: int, end: int, before: int, names: tuple[str, ...]
    ) -> int:
        lateral = at < end and self.words[at] == "LATERAL"
        at += lateral
        if at >= end:
            raise NotUnderstoodError
        start = at
        if self._opens(at):
            close = self.close[at]
            source = Source("other", start, close + 1)
            if self._starts_query(at + 1):
                source = Source("query", start, close + 1, query=self.query(at + 1, close))
            elif self.words[at + 1] != "VALUES":
                group = Select(at, close, (at, at))
                if self._sources(group, at + 1, close) != close:
                    raise NotUnderstoodError
                source.group = group
        else:
            at += 1
            while at + 1 < end and self.tokens[at].token_type == TokenType.DOT:
                at += 2
            if at < end and self._opens(at):
                source = Source("function", start, self.close[at] + 1)
                select.inner += self.inside(at + 1, self.close[at])
            else:
                source = Source("table", start, at)
        source.before, source.words, source.lateral = before, names, lateral
        at = source.end
        if at < end and self.words[at] == "AS":
            source.alias = at + 1
        elif at < end and self._may_be_alias(at):
            source.alias = at
        if source.alias is not None:
            at = source.alias + 1
            if at < end and self._opens(at):
                source.columns = tuple(range(at + 1, self.close[at], 2))
                at = self.close[at] + 1
        source.stop = at
        select.sources.append(source)
        return at

    def _may_be_alias(self, at: int) -> bool:
        kind = self.tokens[at].token_type
        if kind == TokenType.IDENTIFIER:
            return True
        text = self.tokens[at].text
        plain = text.replace("_", "a").isalnum() and not text[0].isdigit()
        return plain and self.words[at] not in (*_NO_ALIAS, "WITH")


def rewrite_in_rounds(sql: str, rewrite: Callable[[Reader], str | None]) -> str:
    """``sql`` rewritten until ``rewrite`` returns None; each round reads the text of the one
    before."""
    for _ in range(_MOST_ROUNDS):
        text = rewrite(Reader(sql))
        if text is None:
            break
        sql = text
    return sql
