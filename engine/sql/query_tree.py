"""Locates the queries of a text on its tokens: their CTEs, branches and sources.

Like ``callsites``, this reads tokens and no syntax tree, so that whatever it does not know stays as
it is. All positions are those of tokens; an end is one past the last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.sql.call_sites import nesting

_SET_OPERATORS = {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
_TAIL = {"ORDER", "LIMIT", "OFFSET", "FETCH"}
_BEHIND_FROM = {"WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "SORT", "CLUSTER", "DISTRIBUTE"}
_JOIN = {
    *("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "OUTER", "SEMI", "ANTI"),
    "LATERAL",
}
_NO_ALIAS = {*_SET_OPERATORS, *_TAIL, *_BEHIND_FROM, *_JOIN, "ON", "USING", "TABLESAMPLE", "FOR"}
_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING)


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
    """Those words: ``(',',)``, ``('LEFT', 'JOIN')``; none before the first."""
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
    """What set operators combine. A query stands in parentheses."""
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
        """This query and all inside it, outer ones first, with what they can name."""
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

    def text(self, sql: str, tokens: Sequence[Token]) -> str:
        """The WITH clause that defines them; '' for none."""
        if not self.common:
            return ""
        parts = [sql[tokens[c.name].start : tokens[c.end - 1].end + 1] for c in self.common]
        return f"WITH {'RECURSIVE ' * self.recursive}{', '.join(parts)} "


class NotUnderstoodError(Exception):
    """The tokens are not what this module expects: nothing is known about the text."""


def word(token: Token) -> str:
    """The first word of a token in upper case; '' for what stands in quotes."""
    if token.token_type in _QUOTED or not token.text:
        return ""
    return token.text.split()[0].upper()


def identifier(token: Token) -> str:
    """The name that an identifier means: DataFusion lowers those without quotes."""
    return token.text if token.token_type in _QUOTED else token.text.lower()


def name_of(source: Source, tokens: Sequence[Token]) -> str | None:
    """The name by which the columns of a relation are qualified; None if there is none."""
    if source.alias is not None:
        return identifier(tokens[source.alias])
    return identifier(tokens[source.end - 1]) if source.kind == "table" else None


def reads_bare(
    tokens: Sequence[Token], whole: Query | Select, select: Select, names: Collection[str]
) -> bool:
    """True if one of ``names`` may be read in ``whole`` without its relation: ``*`` as an item of
    ``select``, a column anywhere but in its relations and their joins' USING."""
    if "*" in names:
        depth = 0
        for at in range(*select.items):
            depth += nesting(tokens[at])
            dotted = tokens[at - 1].token_type == TokenType.DOT
            if depth == 0 and tokens[at].token_type == TokenType.STAR and not dotted:
                return True
    skipped: set[int] = set()
    for source in select.sources:
        skipped.update(range(source.start, source.stop))
        if source.on is not None and word(tokens[source.on[0]]) == "USING":
            skipped.update(range(*source.on))
    for at in range(whole.start, whole.end):
        around = (tokens[at - 1], tokens[at + 1]) if 0 < at < len(tokens) - 1 else (tokens[at - 1],)
        if (
            at not in skipped
            and identifier(tokens[at]) in names
            and tokens[at].token_type not in (TokenType.STRING, TokenType.STAR)
            and not any(t.token_type == TokenType.DOT for t in around)
            and word(tokens[at - 1]) != "AS"
        ):
            return True
    return False


def conjuncts(tokens: Sequence[Token], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a condition between its outermost ANDs; all of it if it has an OR there."""
    depth, ranges = 0, 0
    ends: list[int] = []
    for at in range(start, end):
        keyword = word(tokens[at])
        depth += nesting(tokens[at]) + (keyword == "CASE") - (keyword == "END")
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


def queries(tokens: Sequence[Token]) -> list[Query]:
    """The outermost queries in a text; none if it is not understood."""
    try:
        end = len(tokens)
        while end and tokens[end - 1].token_type == TokenType.SEMICOLON:
            end -= 1
        return _Parser(tokens[:end]).inside(0, end)
    except (NotUnderstoodError, RecursionError):
        return []


def visible_tables(sql: str, tokens: Sequence[Token], at: int) -> str:
    """The WITH clause of the common table expressions that are visible at offset ``at`` of ``sql``;
    '' if there are none."""
    around = [
        (query.end - query.start, scope)
        for outer in queries(tokens)
        for query, scope in outer.walk()
        if tokens[query.start].start < at <= tokens[query.end - 1].end
    ]
    return min(around, key=lambda found: found[0])[1].text(sql, tokens) if around else ""


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.words = [word(token) for token in tokens]
        self.close: dict[int, int] = {}
        opened: list[int] = []
        for i, token in enumerate(tokens):
            change = nesting(token)
            if token.token_type == TokenType.SEMICOLON:
                raise NotUnderstoodError
            if change > 0:
                opened.append(i)
            elif change < 0:
                if not opened:
                    raise NotUnderstoodError
                self.close[opened.pop()] = i
        if opened:
            raise NotUnderstoodError

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
            if self.words[at] == "SELECT" or self._is_with(at):
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
        """The first token of ``words`` that stands in no bracket; ``end`` if there is none."""
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
