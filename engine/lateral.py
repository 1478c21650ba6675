"""``FROM t CROSS JOIN UNNEST(t.xs) AS u(v)`` as ``FROM (SELECT *, unnest(t.xs) AS v FROM t) AS t``.

DataFusion plans an UNNEST that reads a table beside it in FROM, and then cannot run it; in a select
list it can. Both give one row for each element, none for an empty or missing list.

What is rewritten: UNNEST after a comma, CROSS JOIN, JOIN … ON and LEFT JOIN … ON TRUE (a row with
NULL for an empty or missing list), also as ``LATERAL (SELECT unnest(t.xs) AS v)``. Anything
that is not understood stays as it is, for DataFusion to say what it thinks of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.callsites import nesting, tokenize
from blendfusion.clauses import Query, Select, Source, identifier, queries, word

Columns = Callable[[str, str], Sequence[str] | None]
"""The names of the columns of a relation, given a WITH clause and the relation as it stands in FROM;
None if they cannot be told."""

_MOST = 32
"""Each round rewrites one UNNEST."""
_BEFORE_ITEMS = ("SELECT", "DISTINCT", "ALL")
_NO_COLUMNS = ("CASE", "WHEN", "THEN", "ELSE", "END", "NULL", "TRUE", "FALSE", "AS")


def unnested(sql: str, columns: Columns) -> str:
    """``sql`` with its lateral UNNESTs in select lists."""
    for _ in range(_MOST):
        if "unnest" not in sql.lower():
            break
        new = _one(sql, columns)
        if new == sql:
            break
        sql = new
    return sql


def _one(sql: str, columns: Columns) -> str:
    tokens = tokenize(sql)
    for outer in queries(tokens):
        for query, scope in outer.walk():
            for select in query.branches:
                if isinstance(select, Select):
                    whole = query if len(query.branches) == 1 else select
                    common = scope.text(sql, tokens)
                    for source in select.sources[1:]:
                        found = _Rewriting(
                            sql, tokens, select, source, whole, partial(columns, common)
                        ).text()
                        if found is not None:
                            return found
    return sql


def quoted_name(name: str) -> str:
    """A name as an identifier that means exactly it."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(slots=True)
class _Unnest:
    start: int
    """The first and the last token of what is unnested."""
    end: int
    name: str
    """The name of its column."""
    keeps_empty: bool
    """A row whose list is empty or missing stays, as in a LEFT JOIN."""
    condition: tuple[int, int] | None
    """What the rows have to meet: the tokens behind ON."""


class _Rewriting:
    """One UNNEST of one SELECT; ``whole`` is where its columns may be named."""

    def __init__(
        self,
        sql: str,
        tokens: Sequence[Token],
        select: Select,
        source: Source,
        whole: Query | Select,
        columns: Callable[[str], Sequence[str] | None],
    ) -> None:
        self.sql = sql
        self.tokens = tokens
        self.select = select
        self.source = source
        self.whole = whole
        self.columns = columns

    def text(self) -> str | None:
        """The query without this UNNEST in FROM; None if it is none, or not understood."""
        unnest = self._unnest()
        owner = self._owner(unnest) if unnest is not None else None
        if unnest is None or owner is None:
            return None
        alias = self._alias(owner)
        known = self.columns(self._span(owner.start, owner.stop))
        if alias is None or known is None:
            return None
        mine = self._alias(self.source)
        called = identifier(mine) if mine is not None else ""
        if called and self._shadowed(called):
            return None
        inside = unnest.name if unnest.name not in known else f"{called}.{unnest.name}"
        if inside in known or (inside != unnest.name and self._is_bare(unnest.name)):
            return None
        edits = self._references(called, alias, unnest.name, inside)
        stars = self._stars(owner, alias, known, inside)
        if stars is None:
            return None
        values = self._span(unnest.start, unnest.end)
        if unnest.keeps_empty:
            values = f"CASE WHEN cardinality({values}) > 0 THEN {values} ELSE [NULL] END"
        relation = (
            f"(SELECT *, unnest({values}) AS {quoted_name(inside)} "
            f"FROM {self._span(owner.start, owner.stop)}) AS {self._written(alias)}"
        )
        if unnest.condition is not None:
            condition = self._edited_span(*unnest.condition, edits)
            relation = f"(SELECT * FROM {relation} WHERE {condition}) AS {self._written(alias)}"
            if self.columns(relation) is None:  # it reads more than this relation
                return None
        gone = self.source.on[1] if self.source.on else self.source.stop
        edits += stars
        edits.append((owner.start, owner.stop, relation))
        edits.append((self.source.before, gone, ""))
        return self._edited(edits)

    # --- what it is ------------------------------------------------------------------------------

    def _unnest(self) -> _Unnest | None:
        source = self.source
        words = [w for w in source.words if w not in ("INNER", "OUTER")]
        keeps_empty = words == ["LEFT", "JOIN"]
        condition = None
        if words == ["JOIN"] or keeps_empty:
            if source.on is None or not self._is(source.on[0], "ON"):
                return None
            if [word(t) for t in self.tokens[slice(*source.on)]] != ["ON", "TRUE"]:
                condition = source.on[0] + 1, source.on[1]
                if keeps_empty:
                    return None
        elif words not in ([""], [","], ["CROSS", "JOIN"]) or source.on:
            return None
        name = self._column_name()
        if source.kind == "function" and self._is(source.start, "UNNEST"):
            start, end = source.start + 2, source.end - 1
            return _Unnest(start, end, name or "unnest", keeps_empty, condition)
        if source.kind == "query" and source.lateral and source.query is not None:
            found = self._of_subquery(source.query)
            if found is not None:
                return replace(found, keeps_empty=keeps_empty, condition=condition)
        return None

    def _of_subquery(self, query: Query) -> _Unnest | None:
        """The UNNEST of ``(SELECT unnest(…) [AS name])``."""
        start, end = query.start, query.end
        if not (self._is(start, "SELECT") and self._is(start + 1, "UNNEST")):
            return None
        depth, close = 0, start + 2
        for close in range(start + 2, end):
            depth += nesting(self.tokens[close])
            if depth == 0:
                break
        rest = self.tokens[close + 1 : end]
        if rest and word(rest[0]) == "AS":
            rest = rest[1:]
        if len(rest) != 1:
            return None
        listed = [identifier(self.tokens[i]) for i in self.source.columns]
        name = listed[0] if listed else identifier(rest[0])
        if len(listed) > 1:
            return None
        return _Unnest(start + 3, close, name, keeps_empty=False, condition=None)

    def _column_name(self) -> str | None:
        listed = [identifier(self.tokens[i]) for i in self.source.columns]
        if listed:
            return listed[0]
        return None if self.source.alias is None else identifier(self.tokens[self.source.alias])

    def _owner(self, unnest: _Unnest) -> Source | None:
        """The relation beside it that the UNNEST reads; None if that is none, or several."""
        if len(self.source.columns) > 1:
            return None
        before = self.select.sources[: self.select.sources.index(self.source)]
        if any("NATURAL" in s.words for s in self.select.sources):
            return None
        owners = []
        for at in range(unnest.start, unnest.end):
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
                alias = self._alias(source)
                if alias is not None and identifier(alias) == name:
                    return source
        if len(before) == 1:
            return before[0]
        having = [s for s in before if name in (self.columns(self._span(s.start, s.stop)) or ())]
        return having[0] if len(having) == 1 else None

    def _shadowed(self, name: str) -> bool:
        """True if an inner query has a relation of this name, which its columns may mean."""
        aliases = (
            self._alias(source)
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
        self, called: str, alias: Token, name: str, inside: str
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
            if not star and identifier(column) != name:
                continue
            text = f"{self._written(alias)}.{quoted_name(inside)}"
            if inside != name and self._is_item(at, at + 3) and self._is_only(at, name):
                text += f" AS {quoted_name(name)}"
            edits.append((at, at + 3, text))
        return edits

    def _stars(
        self, owner: Source, alias: Token, known: Sequence[str], inside: str
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
        self, owner: Source, alias: Token, known: Sequence[str], inside: str
    ) -> str | None:
        parts = []
        for source in self.select.sources:
            if source.on and self._is(source.on[0], "USING"):
                return None
            if source is self.source:
                parts.append(f"{self._written(alias)}.{quoted_name(inside)}")
                continue
            called, names = self._alias(source), known
            if source is not owner:
                names = self.columns(self._span(source.start, source.stop)) or ()
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

    def _is(self, at: int, text: str) -> bool:
        return word(self.tokens[at]) == text

    def _alias(self, source: Source) -> Token | None:
        """The name by which a relation's columns are qualified."""
        if source.alias is not None:
            return self.tokens[source.alias]
        return self.tokens[source.end - 1] if source.kind == "table" else None

    def _written(self, token: Token) -> str:
        return quoted_name(identifier(token))

    def _span(self, start: int, end: int) -> str:
        return self.sql[self.tokens[start].start : self.tokens[end - 1].end + 1]

    def _edited_span(self, start: int, end: int, edits: Sequence[tuple[int, int, str]]) -> str:
        inside = [(a - start, b - start, t) for a, b, t in edits if start <= a and b <= end]
        tokens = self.tokens[start:end]
        return edited(self._span(start, end), tokens, inside, offset=tokens[0].start)

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
