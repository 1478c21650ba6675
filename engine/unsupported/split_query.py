"""Splits a query with calls below unsupported plans into parts, and a rest without calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot.tokenizer_core import Token

from blendfusion.sql.lateral import edited, quoted_name
from blendfusion.sql.query_tree import Query, Scope, Select, identifier, queries, word
from blendfusion.sql.tokenizer import tokenize

Taken = Callable[[str], "str | None"]
"""Takes a query as a part, and returns the name of a table for its result, or None."""


def split(sql: str, take: Taken) -> str:
    """``sql`` with its outermost queries that ``take`` accepts replaced by the tables of their
    results.

    The candidates are common table expressions, derived tables, and, below an unnest() in a select
    list, the rows of FROM and WHERE.
    """
    tokens = tokenize(sql)
    splitting = _Splitting(sql, tokens, take)
    for query in queries(tokens):
        splitting.query(query, Scope())
    return edited(sql, tokens, splitting.edits)


class _Splitting:
    def __init__(self, sql: str, tokens: Sequence[Token], take: Taken) -> None:
        self._sql = sql
        self._tokens = tokens
        self._take = take
        self.edits: list[tuple[int, int, str]] = []

    def query(self, query: Query, scope: Scope) -> None:
        for common in query.common:
            outer = scope
            scope = scope.and_then(common, recursive=query.recursive)
            name = self._span(common.name, common.name + 1)
            taken = self._take(f"{self._with(scope)}SELECT * FROM {name}")
            if taken is not None:
                body = common.query
                self.edits.append((body.start, body.end, f"SELECT * FROM {taken}"))
            else:
                self.query(common.query, outer)
        for branch in query.branches:
            if isinstance(branch, Query):
                self.query(branch, scope)
            else:
                self._select(branch, scope)

    def _select(self, select: Select, scope: Scope) -> None:
        if self._rows(select, scope):
            return
        for source in select.sources:
            if source.query is None or source.lateral:
                continue
            inside = self._span(source.query.start, source.query.end)
            taken = self._take(self._with(scope) + inside)
            if taken is not None:
                self.edits.append((source.start, source.end, taken))
            else:
                self.query(source.query, scope)

    def _rows(self, select: Select, scope: Scope) -> bool:
        """Take the rows of FROM and WHERE: of one relation, whose columns keep their qualifier."""
        items = self._tokens[slice(*select.items)]
        if len(select.sources) != 1 or select.where is None:
            return False
        if not any(word(token) == "UNNEST" for token in items):
            return False
        source = select.sources[0]
        if source.alias is None and source.kind != "table":
            return False
        rows = self._span(source.start, select.where[1])
        taken = self._take(f"{self._with(scope)}SELECT * FROM {rows}")
        if taken is None:
            return False
        at = source.end - 1 if source.alias is None else source.alias
        alias = quoted_name(identifier(self._tokens[at]))
        self.edits.append((source.start, select.where[1], f"{taken} AS {alias}"))
        return True

    def _with(self, scope: Scope) -> str:
        return scope.text(self._sql, self._tokens)

    def _span(self, start: int, end: int) -> str:
        return self._sql[self._tokens[start].start : self._tokens[end - 1].end + 1]
