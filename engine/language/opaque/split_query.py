"""Splits a query with calls below unsupported plans into parts, and a rest without calls."""

from __future__ import annotations

from collections.abc import Callable

from blendfusion.language.query_text.call_sites import Span, call_spans
from blendfusion.language.query_text.query_tree import Query, Reader, Scope, Select
from blendfusion.udfs.declare.arguments import quoted_name
from blendfusion.udfs.declare.call_registry import calls_in

Taken = Callable[[str], "str | None"]
"""Takes a query as a part, and returns the name of a table for its result, or None."""
_OF_ALL_ROWS = {"UNNEST", "OVER", "IGNORE"}
"""Words of what Substrait may lack, and DataFusion computes from the rows behind WHERE."""
_DROP_ROWS = {"LIMIT", "FETCH", "OFFSET", "QUALIFY", "UNNEST"}
"""Words of what leaves out rows whose answers nobody reads then."""
_LAZY = {"CASE", "COALESCE", "NVL", "IFNULL", "OR"}
"""Words of expressions that evaluate some of their parts for some rows."""
_ENDS_OF_BOUNDS = {"PRECEDING", "FOLLOWING", "ROW"}
_CALL = "__blendfusion_call_{}"


def split(sql: str, take: Taken, *, whole: bool) -> str:
    """``sql`` with its outermost queries that ``take`` accepts replaced by the tables of their
    results.

    The candidates are common table expressions, derived tables, and, below an unnest(), a window or
    an IGNORE NULLS in a select list, the rows of FROM and WHERE. Where ``sql`` is the ``whole``
    query, so that nothing above it drops rows, these come with the answers in its select list.
    """
    splitting = _Splitting(Reader(sql), take)
    with_answers = whole and not _DROP_ROWS & {*splitting.reader.words}
    for query in splitting.reader.outer:
        splitting.query(query, Scope(), with_answers=with_answers)
    return splitting.reader.edit(splitting.edits)


class _Splitting:
    def __init__(self, reader: Reader, take: Taken) -> None:
        self.reader = reader
        self._take = take
        self.edits: list[tuple[int, int, str]] = []

    def query(self, query: Query, scope: Scope, *, with_answers: bool = False) -> None:
        for common in query.common:
            outer = scope
            scope = scope.and_then(common, recursive=query.recursive)
            name = self.reader.source_text(common.name, common.name + 1)
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
                self._select(branch, scope, with_answers=with_answers)

    def _select(self, select: Select, scope: Scope, *, with_answers: bool) -> None:
        if self._rows(select, scope, with_answers=with_answers):
            return
        for source in select.sources:
            if source.query is None or source.lateral:
                continue
            inside = self.reader.source_text(source.query.start, source.query.end)
            taken = self._take(self._with(scope) + inside)
            if taken is not None:
                self.edits.append((source.start, source.end, taken))
            else:
                self.query(source.query, scope)

    def _rows(self, select: Select, scope: Scope, *, with_answers: bool) -> bool:
        """Take the rows of FROM and WHERE: of one relation, whose columns keep their qualifier, and
        the calls of the select list as further columns."""
        if len(select.sources) != 1:
            return False
        if not _OF_ALL_ROWS & {*self.reader.words[slice(*select.items)]}:
            return False
        source = select.sources[0]
        alias = self.reader.name_of(source)
        if alias is None:
            return False
        calls = self._answers(select)
        if calls is None or (calls and not with_answers):
            return False
        if select.where is None and not calls:
            return False  # a query in FROM is a part by itself
        end = source.end if select.where is None else select.where[1]
        answers = "".join(
            f", {self.reader.source_text(*span)} AS {_CALL.format(i)}"
            for i, span in enumerate(calls)
        )
        rows = self.reader.source_text(source.start, end)
        taken = self._take(f"{self._with(scope)}SELECT *{answers} FROM {rows}")
        if taken is None:
            return False
        self.edits.append((source.start, end, f"{taken} AS {quoted_name(alias)}"))
        self.edits += [(*span, _CALL.format(i)) for i, span in enumerate(calls)]
        return True

    def _answers(self, select: Select) -> list[Span] | None:
        """The outermost calls of a select list; None where some may be asked of some rows only."""
        start, end = select.items
        names = [call.name for call in calls_in(self.reader.source_text(start, end))]
        found = [s for s in call_spans(self.reader, names) if start <= s[0] < end] if names else []
        words = self.reader.words
        lazy = any(
            words[at] in _LAZY or (words[at] == "AND" and words[at - 1] not in _ENDS_OF_BOUNDS)
            for at in range(start, end)
        )
        if found and lazy:
            return None
        return [s for s in found if not any(o[0] < s[0] < o[1] for o in found)]

    def _with(self, scope: Scope) -> str:
        return scope.text(self.reader)
