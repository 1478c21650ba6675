"""Rewrites a relation in FROM that reads an earlier one into that relation: the common base of such
rewrites.

``FROM t CROSS JOIN UNNEST(t.xs) AS u(v)`` becomes ``FROM (SELECT *, unnest(t.xs) AS v FROM t) AS
t``, and what names ``u`` names ``t``. DataFusion 55 has no plan for the first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.sql.call_sites import nesting
from blendfusion.sql.query_tree import Query, Select, Source, identifier, queries, word
from blendfusion.sql.tokenizer import tokenize

Columns = Callable[[str, str], Sequence[str] | None]
"""The names of the columns of a relation, given a WITH clause and the relation as it stands in
FROM; None if they cannot be told."""

_MOST = 32
"""Each round rewrites one source."""
_BEFORE_ITEMS = ("SELECT", "DISTINCT", "ALL")
_NO_COLUMNS = ("CASE", "WHEN", "THEN", "ELSE", "END", "NULL", "TRUE", "FALSE", "AS")


@dataclass(frozen=True, slots=True)
class Place:
    """One source of one SELECT in a text; ``whole`` is where its columns may be named."""

    sql: str
    tokens: Sequence[Token]
    select: Select
    source: Source
    whole: Query | Select
    columns: Callable[[str], Sequence[str] | None]


Rewrite: TypeAlias = Callable[[Place], "str | None"]
"""The text without a source of a certain kind; None if it is of another."""


def rewritten(sql: str, columns: Columns, rewrite: Rewrite) -> str:
    """``sql`` with all sources rewritten that ``rewrite`` rewrites, one after the other."""
    for _ in range(_MOST):
        new = _one(sql, columns, rewrite)
        if new is None:
            break
        sql = new
    return sql


def _one(sql: str, columns: Columns, rewrite: Rewrite) -> str | None:
    tokens = tokenize(sql)
    for outer in queries(tokens):
        for query, scope in outer.walk():
            for select in query.branches:
                if isinstance(select, Select):
                    whole = query if len(query.branches) == 1 else select
                    known = partial(columns, scope.text(sql, tokens))
                    for source in select.sources:
                        found = rewrite(Place(sql, tokens, select, source, whole, known))
                        if found is not None:
                            return found
    return None


def quoted_name(name: str) -> str:
    """A name as an identifier that means exactly it."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(slots=True)
class Expanded:
    """What makes several rows of each row of a relation beside it."""

    start: int
    """The first and the last token of what it reads."""
    end: int
    names: tuple[str, ...]
    """The columns that it brings."""
    keeps_empty: bool
    """A row of which it makes none stays, as in a LEFT JOIN."""
    condition: tuple[int, int] | None
    """What the rows have to meet: the tokens behind ON."""


class Rewriting(ABC):
    """The rewriting of a source that reads a relation beside it."""

    def __init__(self, place: Place) -> None:
        self.sql = place.sql
        self.tokens = place.tokens
        self.select = place.select
        self.source = place.source
        self.whole = place.whole
        self.columns = place.columns

    @abstractmethod
    def expanded(self) -> Expanded | None:
        """What the source is; None if it is not to be rewritten."""

    @abstractmethod
    def relation(
        self, what: Expanded, owner: str, known: Sequence[str], inside: Sequence[str]
    ) -> str:
        """A query of the columns ``known`` of the relation ``owner``, and after them those that
        ``what`` brings, called ``inside``."""

    def text(self) -> str | None:
        """The query without this source in FROM; None if it is another, or not understood."""
        what = self.expanded()
        owner = self._owner(what) if what is not None else None
        if what is None or owner is None:
            return None
        alias = self.alias_of(owner)
        known = self.columns(self.span(owner.start, owner.stop))
        if alias is None or known is None:
            return None
        mine = self.alias_of(self.source)
        called = identifier(mine) if mine is not None else ""
        if called and self._shadowed(called):
            return None
        inside = {name: name if name not in known else f"{called}.{name}" for name in what.names}
        for name, new in inside.items():
            if new in known or (new != name and self._is_bare(name)):
                return None
        edits = self._references(called, alias, inside)
        stars = self._stars(owner, alias, known, list(inside.values()))
        if stars is None:
            return None
        query = self.relation(
            what, self.span(owner.start, owner.stop), known, list(inside.values())
        )
        relation = f"({query}) AS {self._written(alias)}"
        if what.condition is not None:
            condition = self._edited_span(*what.condition, edits)
            relation = f"(SELECT * FROM {relation} WHERE {condition}) AS {self._written(alias)}"
            if self.columns(relation) is None:  # it reads more than this relation
                return None
        gone = self.source.on[1] if self.source.on else self.source.stop
        edits += stars
        edits.append((owner.start, owner.stop, relation))
        edits.append((self.source.before, gone, ""))
        return self._edited(edits)

    # --- what it is ------------------------------------------------------------------------------

    def joined(self) -> tuple[bool, tuple[int, int] | None] | None:
        """How the source is joined: whether rows without any of it stay, and the condition; None
        for a join that has no such form."""
        source = self.source
        words = [w for w in source.words if w not in ("INNER", "OUTER")]
        keeps_empty = words == ["LEFT", "JOIN"]
        if words == ["JOIN"] or keeps_empty:
            if source.on is None or not self.is_word(source.on[0], "ON"):
                return None
            if [word(t) for t in self.tokens[slice(*source.on)]] == ["ON", "TRUE"]:
                return keeps_empty, None
            return None if keeps_empty else (False, (source.on[0] + 1, source.on[1]))
        if words not in ([""], [","], ["CROSS", "JOIN"]) or source.on:
            return None
        return False, None

    def _owner(self, what: Expanded) -> Source | None:
        """The relation beside it that the source reads; None if that is none, or several."""
        if len(self.source.columns) > 1:
            return None
        before = self.select.sources[: self.select.sources.index(self.source)]
        if any("NATURAL" in s.words for s in self.select.sources):
            return None
        owners = []
        for at in range(what.start, what.end):
            token = self.tokens[at]
            follows = self.tokens[at - 1].token_type == TokenType.DOT
            called = self.tokens[at + 1].token_type == TokenType.L_PAREN
            if follows or called or not _is_identifier(token):
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
        name = identifier(self.tokens[at])
        if self.tokens[at + 1].token_type == TokenType.DOT:
            for source in before:
                alias = self.alias_of(source)
                if alias is not None and identifier(alias) == name:
                    return source
        if len(before) == 1:
            return before[0]
        having = [s for s in before if name in (self.columns(self.span(s.start, s.stop)) or ())]
        return having[0] if len(having) == 1 else None

    def _shadowed(self, name: str) -> bool:
        """True if an inner query has a relation of this name, which its columns may mean."""
        aliases = (
            self.alias_of(source)
            for below in self.select.inner
            for query, _ in below.walk()
            for branch in query.branches
            if isinstance(branch, Select)
            for source in branch.sources
        )
        return any(alias is not None and identifier(alias) == name for alias in aliases)

    def _is_bare(self, name: str) -> bool:
        """True if a column of this name is written without its relation, though there are two:
        DataFusion says so."""
        relations = [range(s.start, s.stop) for s in self.select.sources]
        return any(
            _is_identifier(token)
            and identifier(token) == name
            and TokenType.DOT not in (self.tokens[at - 1].token_type, self._kind(at + 1))
            and word(self.tokens[at - 1]) != "AS"
            and not any(at in relation for relation in relations)
            for at, token in enumerate(self.tokens)
            if self.whole.start < at < self.whole.end
        )

    def _kind(self, at: int) -> TokenType | None:
        return self.tokens[at].token_type if at < len(self.tokens) else None

    # --- what changes ----------------------------------------------------------------------------

    def _references(
        self, called: str, alias: Token, inside: Mapping[str, str]
    ) -> list[tuple[int, int, str]]:
        """``u.v`` as a column of the relation that it came from."""
        edits = []
        for at in range(self.whole.start, self.whole.end - 2):
            dot, column = self.tokens[at + 1], self.tokens[at + 2]
            qualified = self.tokens[at - 1].token_type == TokenType.DOT if at else False
            mine = _is_identifier(self.tokens[at]) and identifier(self.tokens[at]) == called
            if qualified or not mine or dot.token_type != TokenType.DOT:
                continue
            star = column.token_type == TokenType.STAR
            named = list(inside) if star else [identifier(column)]
            texts = [
                self._reference(at, alias, name, inside[name]) for name in named if name in inside
            ]
            if texts:
                edits.append((at, at + 3, ", ".join(texts)))
        return edits

    def _reference(self, at: int, alias: Token, name: str, inside: str) -> str:
        text = f"{self._written(alias)}.{quoted_name(inside)}"
        if inside != name and self._is_item(at, at + 3) and self._is_only(at, name):
            text += f" AS {quoted_name(name)}"
        return text

    def _stars(
        self, owner: Source, alias: Token, known: Sequence[str], inside: Sequence[str]
    ) -> list[tuple[int, int, str]] | None:
        """``*`` and ``t.*`` as the columns that they meant; None if that cannot be told."""
        edits = []
        for at in range(*self.select.items):
            if self.tokens[at].token_type != TokenType.STAR:
                continue
            if self._is_item(at, at + 1, exactly=False):
                sources = self.select.sources
                follows = sources.index(self.source) == sources.index(owner) + 1
                if follows:
                    continue
                every = self._every_column(owner, alias, known, inside)
                if every is None or not self._is_item(at, at + 1):
                    return None
                edits.append((at, at + 1, every))
            elif self._is_item(at - 2, at + 1, exactly=False) and (
                identifier(self.tokens[at - 2]) == identifier(alias)
            ):
                if not self._is_item(at - 2, at + 1):
                    return None
                listed = (f"{self._written(alias)}.{quoted_name(c)}" for c in known)
                edits.append((at - 2, at + 1, ", ".join(listed)))
        return edits

    def _every_column(
        self, owner: Source, alias: Token, known: Sequence[str], inside: Sequence[str]
    ) -> str | None:
        parts = []
        for source in self.select.sources:
            if source.on and self.is_word(source.on[0], "USING"):
                return None
            if source is self.source:
                parts += [f"{self._written(alias)}.{quoted_name(c)}" for c in inside]
                continue
            called, names = self.alias_of(source), known
            if source is not owner:
                names = self.columns(self.span(source.start, source.stop)) or ()
            if called is None or not names:
                return None
            parts += [f"{self._written(called)}.{quoted_name(c)}" for c in names]
        return ", ".join(parts)

    def _is_item(self, start: int, end: int, *, exactly: bool = True) -> bool:
        """True if the tokens are (or, not ``exactly``, begin) a whole item of the select list."""
        first, last = self.select.items
        if not first <= start < last:
            return False
        if sum(map(nesting, self.tokens[first:start])):
            return False
        before = self.tokens[start - 1]
        begins = before.token_type == TokenType.COMMA or word(before) in _BEFORE_ITEMS
        ends = end >= last or self.tokens[end].token_type == TokenType.COMMA
        return begins and (ends or not exactly)

    def _is_only(self, at: int, name: str) -> bool:
        """True if no other item of the select list can have this name: DataFusion tells columns of
        one name apart by their relations, and these are of one relation now."""
        first, last = self.select.items
        others = (*self.tokens[first:at], *self.tokens[at + 3 : last])
        return not any(
            t.token_type == TokenType.STAR or (_is_identifier(t) and identifier(t) == name)
            for t in others
        )

    # --- text ------------------------------------------------------------------------------------

    def is_word(self, at: int, text: str) -> bool:
        return word(self.tokens[at]) == text

    def alias_of(self, source: Source) -> Token | None:
        """The name by which a relation's columns are qualified."""
        if source.alias is not None:
            return self.tokens[source.alias]
        return self.tokens[source.end - 1] if source.kind == "table" else None

    def _written(self, token: Token) -> str:
        return quoted_name(identifier(token))

    def span(self, start: int, end: int) -> str:
        return self.sql[self.tokens[start].start : self.tokens[end - 1].end + 1]

    def _edited_span(self, start: int, end: int, edits: Sequence[tuple[int, int, str]]) -> str:
        inside = [(a - start, b - start, t) for a, b, t in edits if start <= a and b <= end]
        tokens = self.tokens[start:end]
        return edited(self.span(start, end), tokens, inside, offset=tokens[0].start)

    def _edited(self, edits: Sequence[tuple[int, int, str]]) -> str:
        return edited(self.sql, self.tokens, edits)


def edited(
    sql: str, tokens: Sequence[Token], edits: Sequence[tuple[int, int, str]], offset: int = 0
) -> str:
    """``sql`` with tokens replaced: (first, one past the last, text). An edit inside another is
    dropped. ``sql`` starts at ``offset`` of the text that was tokenised."""
    out, at = [], 0
    for start, end, text in sorted(edits, key=lambda e: (e[0], -e[1])):
        first = tokens[start].start - offset
        if first < at:
            continue
        out += [sql[at:first], text]
        at = tokens[end - 1].end + 1 - offset
    return "".join([*out, sql[at:]])


def _is_identifier(token: Token) -> bool:
    if token.token_type == TokenType.IDENTIFIER:
        return True
    if token.token_type in (TokenType.STRING, TokenType.NUMBER) or word(token) in _NO_COLUMNS:
        return False
    return token.text.replace("_", "a").isalnum() and not token.text[0].isdigit()
