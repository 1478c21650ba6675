"""Cuts parts out of a query's text, and replaces them by the names of opaque tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from blendfusion.errors import PlanError
from blendfusion.language.query_text.query_tree import Query, Reader, Scope, Select, Source
from blendfusion.planner.ir.opaque_names import QUERIES, TABLES
from blendfusion.run.hooks import Text
from blendfusion.udfs.declare.arguments import quoted_name
from blendfusion.udfs.declare.call_registry import readable

if TYPE_CHECKING:
    from blendfusion.language.opaque.rewrite import Cutting

_ORIGINAL = re.compile(r"/\*= (.*?) =\*/", re.DOTALL)
_LONGEST = 100
"""Maximum characters of a leaf's description."""


class State(Enum):
    FINE = "Substrait carries it"
    CUT = "it does not, and nothing in it asks"
    INSIDE = "it does not, and something in it asks, or it does not stand alone"


class Cuts:
    """The cuts of one text. ``edits`` replace parts by the names of their leaves."""

    def __init__(self, cutting: Cutting, made: Text) -> None:
        self._cutting = cutting
        self._made = made
        self.reader = Reader(made.sql)
        self.edits: list[tuple[int, int, str]] = []

    def query(self, query: Query, scope: Scope) -> None:
        for common in query.common:
            outer = scope
            scope = scope.and_then(common, recursive=query.recursive)
            body = common.query
            name = self.reader.source_text(common.name, common.name + 1)
            whole = f"{self._with(scope)}SELECT * FROM {name}"
            text = one_line(
                f"WITH {'RECURSIVE ' * query.recursive}{self.reader.source_text(common.name, common.end)}"
            )
            span = body.start, body.end
            if not self._cut(whole, text, span, "SELECT * FROM {}"):
                self.query(body, outer)
                now = f"{self._with_edited(scope)}SELECT * FROM {name}"
                self._settle(whole, now, span, "SELECT * FROM {}")
        for branch in query.branches:
            alone = len(query.branches) == 1 and isinstance(branch, Select)
            if alone or not self._cut_span(branch, scope, "SELECT * FROM {}"):
                if isinstance(branch, Query):
                    self.query(branch, scope)
                else:
                    self._using(branch, query if alone else branch, scope)
                    self._select(branch, scope)
                if not alone:
                    self._settle_span(branch, scope)
        for inner in query.inner:
            self._subquery(inner, scope)

    def _select(self, select: Select, scope: Scope) -> None:
        filtered = self._cut_predicates(select, scope) if self._cutting.predicates else []
        for source in select.sources:
            if source not in filtered:
                self._source(source, scope)
        for inner in select.inner:
            self._subquery(inner, scope)

    def _cut_predicates(self, select: Select, scope: Scope) -> list[Source]:
        """Move predicates that Substrait refuses into leaves of the only relation that they read;
        those relations. An outer join would see rows that the predicate drops."""
        joins = {word for source in select.sources for word in source.words}
        if select.where is None or joins - {"", ",", "JOIN", "INNER", "CROSS"}:
            return []
        found = []
        spans = [
            span
            for span in self.reader.conjuncts(select.where[0] + 1, select.where[1])
            if not any(span[0] <= inner.start < span[1] for inner in select.inner)
        ]
        for source in select.sources:
            name = self.reader.name_of(source)
            if name is None or source.lateral or source.columns:
                continue
            whole = f"{self._with(scope)}SELECT * FROM {self.reader.source_text(source.start, source.stop)}"
            own = [
                s for s in spans if self._is_refused(f"{whole} WHERE {self.reader.source_text(*s)}")
            ]
            if not own:
                continue
            where = " AND ".join(f"({self.reader.source_text(*s)})" for s in own)
            text = one_line(f"{self.reader.source_text(source.start, source.stop)} WHERE {where}")
            written = "{}" + f" AS {quoted_name(name)}"
            if self._cut(f"{whole} WHERE {where}", text, (source.start, source.stop), written):
                self.edits += [(*s, "TRUE") for s in own]
                spans = [s for s in spans if s not in own]
                found.append(source)
        return found

    def _is_refused(self, sql: str) -> bool:
        """Whether a query stands alone, asks nothing, and has no form in Substrait."""
        return self._cutting.examine(self._made, sql)[0] is State.CUT

    def _using(self, select: Select, whole: Query | Select, scope: Scope) -> None:
        """Rewrite outer joins with USING, which Substrait cannot carry, as joins with ON, unless
        one of their columns is read by its bare name or by a star."""
        for at, source in enumerate(select.sources):
            if source.on is None or not {"LEFT", "RIGHT", "FULL"} & set(source.words):
                continue
            reader = self.reader
            names = [reader.name(at) for at in range(source.on[0] + 2, source.on[1] - 1, 2)]
            right = reader.name_of(source)
            if reader.word(source.on[0]) != "USING" or right is None:
                continue
            pairs = [self._having(n, select.sources[:at], scope) for n in names]
            if None in pairs or reader.reads_bare(whole, select, {*names, "*"}):
                continue
            terms = (
                f"{quoted_name(left or '')}.{quoted_name(n)} = {quoted_name(right)}.{quoted_name(n)}"
                for left, n in zip(pairs, names, strict=True)
            )
            self.edits.append((*source.on, f"ON {' AND '.join(terms)}"))

    def _having(self, column: str, sources: Sequence[Source], scope: Scope) -> str | None:
        """The name of the only relation among ``sources`` with this column; None otherwise."""
        found = []
        for source in sources:
            sql = f"{self._with(scope)}SELECT * FROM {self.reader.source_text(source.start, source.stop)}"
            frame = self._cutting.examine(self._made, sql)[1]
            if frame is None:
                return None
            if column in frame.schema().names:
                found.append(self.reader.name_of(source))
        return found[0] if len(found) == 1 else None

    def _subquery(self, query: Query, scope: Scope) -> None:
        if not self._cut_span(query, scope, "SELECT * FROM {}"):
            self.query(query, scope)
            self._settle_span(query, scope)

    def _source(self, source: Source, scope: Scope) -> None:
        span = source.start, source.end
        text = self.reader.source_text(*span)
        if source.query is not None:
            if source.lateral:
                self.query(source.query, scope)
            elif not self._cut_span(source.query, scope, "{}", span):
                self.query(source.query, scope)
                self._settle_span(source.query, scope, "{}", span)
            return
        if source.group is not None:
            self._select(source.group, scope)
        if source.kind == "other":
            return
        if source.kind == "function":
            self._cut(f"{self._with(scope)}SELECT * FROM {text}", one_line(text), span, "{}")
            return
        if source.end == source.start + 1 and self._is_common(source.start, scope):
            return
        name = self.reader.name(source.end - 1)
        alias = "" if source.alias is not None else f" AS {quoted_name(name)}"
        if not self._cut(f"SELECT * FROM {text}", name, span, "{}" + alias, schema=TABLES):
            view = self._cutting.view(text, name)
            if view is not None:
                self.edits.append((*span, f"({view}){alias}"))

    def _is_common(self, at: int, scope: Scope) -> bool:
        return any(self.reader.name(c.name) == self.reader.name(at) for c in scope.common)

    def _cut_span(
        self,
        part: Query | Select,
        scope: Scope,
        written: str,
        span: tuple[int, int] | None = None,
    ) -> bool:
        text = self.reader.source_text(part.start, part.end)
        whole = span or (part.start, part.end)
        return self._cut(self._with(scope) + text, one_line(text), whole, written)

    def _cut(
        self, sql: str, text: str, span: tuple[int, int], written: str, schema: str = QUERIES
    ) -> bool:
        """Handle the part ``sql`` separately; False if it must be divided further.

        ``written`` is the replacement text around the name of the leaf.
        """
        state, frame = self._cutting.examine(self._made, sql)
        if state is not State.CUT or frame is None:
            return state is State.FINE
        try:
            leaf = self._cutting.leaf_of(sql, frame, schema, text)
        except PlanError:
            return False
        self.edits.append((*span, written.replace("{}", leaf.sql, 1)))
        return True

    def _settle_span(
        self,
        part: Query | Select,
        scope: Scope,
        written: str = "SELECT * FROM {}",
        span: tuple[int, int] | None = None,
    ) -> None:
        inside = part.start, part.end
        whole = self._with(scope) + self.reader.source_text(*inside)
        now = self._with_edited(scope) + self.reader.edit(self.edits, *inside)
        self._settle(whole, now, span or inside, written)

    def _settle(self, sql: str, now: str, span: tuple[int, int], written: str) -> None:
        """If Substrait cannot carry ``now``, a part of the text after its cuts, replace it by a
        leaf over parts with its calls, if possible."""
        state, frame = self._cutting.examine(self._made, now)
        if state is not State.INSIDE or frame is None:
            return
        try:
            leaf = self._cutting.above_parts(self._made, sql)
        except PlanError:
            return
        self.edits = [e for e in self.edits if not (span[0] <= e[0] and e[1] <= span[1])]
        self.edits.append((*span, written.replace("{}", leaf.sql, 1)))

    def _with(self, scope: Scope) -> str:
        return scope.text(self.reader)

    def _with_edited(self, scope: Scope) -> str:
        if not scope.common:
            return ""
        listed = ", ".join(
            self.reader.edit(self.edits, common.name, common.end) for common in scope.common
        )
        return f"WITH {'RECURSIVE ' * scope.recursive}{listed} "


def one_line(text: str) -> str:
    """The text of a leaf on one line; a generated comment in it abbreviates it."""
    original = _ORIGINAL.search(text)
    if original is not None:
        text = original[1]
    # A dollar would become a parameter of the query.
    line = " ".join(readable(text).replace("$", "").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
