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

from blendfusion.language.query_text.lateral import (
    Columns,
    Expansion,
    Place,
    Rewriting,
    rewrite_sources,
)
from blendfusion.language.query_text.query_tree import Query
from blendfusion.udfs.declare.arguments import quoted_name


def rewrite_unnest(sql: str, columns: Columns) -> str:
    """``sql`` with its lateral UNNESTs in select lists."""
    return rewrite_sources(sql, columns, _unnest)


def _unnest(place: Place) -> str | None:
    first = place.source is place.select.sources[0]
    return None if first else _Unnest(place).text()


class _Unnest(Rewriting):
    def expansion(self) -> Expansion | None:
        joined = self.join_form()
        if joined is None:
            return None
        keeps_empty, condition = joined
        source = self.source
        if source.kind == "function" and self.reader.word(source.start) == "UNNEST":
            name = self._column_name() or "unnest"
            return Expansion(source.start + 2, source.end - 1, (name,), keeps_empty, condition)
        if source.kind == "query" and source.lateral and source.query is not None:
            found = self._of_subquery(source.query)
            if found is not None:
                start, end, name = found
                return Expansion(start, end, (name,), keeps_empty, condition)
        return None

    def relation(
        self, what: Expansion, owner: str, known: Sequence[str], inside: Sequence[str]
    ) -> str:
        values: str = self.reader.source_text(what.start, what.end)
        if what.keeps_empty:
            values = f"CASE WHEN cardinality({values}) > 0 THEN {values} ELSE [NULL] END"
        return f"SELECT *, unnest({values}) AS {quoted_name(inside[0])} FROM {owner}"

    def _of_subquery(self, query: Query) -> tuple[int, int, str] | None:
        """The list in ``(SELECT unnest(…) [AS name])``, and the name of its column."""
        reader, start = self.reader, query.start
        if reader.words[start : start + 2] != ["SELECT", "UNNEST"] or not reader.opens(start + 2):
            return None
        close = reader.close[start + 2]
        alias = close + 1 + (reader.word(close + 1) == "AS")
        listed = [reader.name(i) for i in self.source.columns]
        if alias != query.end - 1 or len(listed) > 1:
            return None
        return start + 3, close, listed[0] if listed else reader.name(alias)

    def _column_name(self) -> str | None:
        at = self.source.columns[0] if self.source.columns else self.source.alias
        return None if at is None else self.reader.name(at)
