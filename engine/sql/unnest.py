"""Rewrites UNNEST beside a table, ``FROM t CROSS JOIN UNNEST(t.xs) AS u(v)``, as an unnest() in a
select list.

DataFusion plans an UNNEST that reads a table beside it in FROM, and then cannot run it; in a select
list it can. Both give one row for each element, none for an empty or missing list.

What is rewritten: UNNEST after a comma, CROSS JOIN, JOIN … ON and LEFT JOIN … ON TRUE (a row with
NULL for an empty or missing list), also as ``LATERAL (SELECT unnest(t.xs) AS v)``. Anything
that is not understood stays as it is, for DataFusion to say what it thinks of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.sql.call_sites import nesting
from blendfusion.sql.lateral import Columns, Expanded, Place, Rewriting, quoted_name, rewritten
from blendfusion.sql.query_tree import Query, identifier, word


def unnested(sql: str, columns: Columns) -> str:
    """``sql`` with its lateral UNNESTs in select lists."""
    if "unnest" not in sql.lower():
        return sql
    return rewritten(sql, columns, _unnest)


def _unnest(place: Place) -> str | None:
    first = place.source is place.select.sources[0]
    return None if first else _Unnest(place).text()


class _Unnest(Rewriting):
    def expanded(self) -> Expanded | None:
        joined = self.joined()
        if joined is None:
            return None
        keeps_empty, condition = joined
        source = self.source
        if source.kind == "function" and self.is_word(source.start, "UNNEST"):
            name = self._column_name() or "unnest"
            return Expanded(source.start + 2, source.end - 1, (name,), keeps_empty, condition)
        if source.kind == "query" and source.lateral and source.query is not None:
            found = self._of_subquery(source.query)
            if found is not None:
                start, end, name = found
                return Expanded(start, end, (name,), keeps_empty, condition)
        return None

    def relation(
        self, what: Expanded, owner: str, known: Sequence[str], inside: Sequence[str]
    ) -> str:
        values = self.span(what.start, what.end)
        if what.keeps_empty:
            values = f"CASE WHEN cardinality({values}) > 0 THEN {values} ELSE [NULL] END"
        return f"SELECT *, unnest({values}) AS {quoted_name(inside[0])} FROM {owner}"

    def _of_subquery(self, query: Query) -> tuple[int, int, str] | None:
        """What ``(SELECT unnest(…) [AS name])`` unnests, and the name of its column."""
        start, end = query.start, query.end
        if not (self.is_word(start, "SELECT") and self.is_word(start + 1, "UNNEST")):
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
        return start + 3, close, name

    def _column_name(self) -> str | None:
        listed = [identifier(self.tokens[i]) for i in self.source.columns]
        if listed:
            return listed[0]
        return None if self.source.alias is None else identifier(self.tokens[self.source.alias])
