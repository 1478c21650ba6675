"""Splits a query with calls below unsupported plans into parts, and a rest without calls."""

from __future__ import annotations

from collections.abc import Callable

from blendfusion.language.query_text.query_tree import Query, Reader, Scope, Select
from blendfusion.udfs.declare.arguments import quoted_name

Taken = Callable[[str], "str | None"]
"""Takes a query as a part, and returns the name of a table for its result, or None."""


def split(sql: str, take: Taken) -> str:
    """``sql`` with its outermost queries that ``take`` accepts replaced by the tables of their
    results.

    The candidates are common table expressions, derived tables, and, below an unnest() in a select
    list, the rows of FROM and WHERE.
    """
    splitting = _Splitting(Reader(sql), take)
    for query in splitting.reader.outer:
        splitting.query(query, Scope())
    return splitting.reader.edited(splitting.edits)


class _Splitting:
    def __init__(self, reader: Reader, take: Taken) -> None:
        self.reader = reader
        self._take = take
        self.edits: list[tuple[int, int, str]] = []

    def query(self, query: Query, scope: Scope) -> None:
        for common in query.common:
            outer = scope
            scope = scope.and_then(common, recursive=query.recursive)
            name = self.reader.written(common.name, common.name + 1)
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
            inside = self.reader.written(source.query.start, source.query.end)
            taken = self._take(self._with(scope) + inside)
            if taken is not None:
                self.edits.append((source.start, source.end, taken))
            else:
                self.query(source.query, scope)

    def _rows(self, select: Select, scope: Scope) -> bool:
        """Take the rows of FROM and WHERE: of one relation, whose columns keep their qualifier."""
        if len(select.sources) != 1 or select.where is None:
            return False
        if "UNNEST" not in self.reader.words[slice(*select.items)]:
            return False
        source = select.sources[0]
        alias = self.reader.name_of(source)
        if alias is None:
            return False
        rows = self.reader.written(source.start, select.where[1])
        taken = self._take(f"{self._with(scope)}SELECT * FROM {rows}")
        if taken is None:
            return False
        text = f"{taken} AS {quoted_name(alias)}"
        self.edits.append((source.start, select.where[1], text))
        return True

    def _with(self, scope: Scope) -> str:
        return scope.text(self.reader)
