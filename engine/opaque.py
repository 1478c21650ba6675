"""A frame once more, with what Substrait cannot carry as opaque leaves.

Of a frame's plan the parts that Substrait refuses and that ask no model are cut out: from SQL text
its common table expressions, derived tables, tables and subqueries; from frames the verb that
brings them in. What is left is an ordinary plan with calls, and rules work on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame, SessionContext, SQLOptions
from datafusion.plan import LogicalPlan
from datafusion.substrait import Producer

from blendfusion.callsites import tokenize
from blendfusion.clauses import (
    Query,
    Scope,
    Select,
    Source,
    identifier,
    name_of,
    queries,
    reads_bare,
    word,
)
from blendfusion.errors import PlanError
from blendfusion.lateral import edited, quoted_name
from blendfusion.leaves import Leaf, surviving_type
from blendfusion.parts import Above, Part
from blendfusion.planner.leaf import QUERIES, TABLES
from blendfusion.planner.lost import lost
from blendfusion.planner.plan import has_lost_types
from blendfusion.split import split
from blendfusion.udfs.call import calls_in, readable

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from blendfusion.frame import Frame
    from blendfusion.session import Session

_FUNCTION = re.compile(r"TableScan: [^ ]*\(\)")
"""A table function: Substrait would name it as a table, which nobody knows."""
_SLOT = "__blendfusion_part_{}"
_LONGEST = 100
"""Characters of a leaf's text."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A frame made from another by a method of DataFrame."""

    method: Callable[..., DataFrame]
    below: Frame
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Text:
    """A frame made from SQL, in which calls are functions."""

    sql: str
    options: SQLOptions | None
    parameters: Mapping[str, Any] | None
    named: Mapping[str, Any]


Origin = Verb | Text | None
"""How a frame was made; None: it reads a table."""


@dataclass(frozen=True, slots=True)
class Twin:
    """A frame with the same result, by position, whose plan Substrait can carry."""

    frame: DataFrame
    leaves: tuple[Leaf, ...]
    above: tuple[Above, ...] = ()
    """The leaves that stand above parts with calls."""

    def open(self) -> None:
        """To be called when it is planned: from then on the leaves are read as what they are."""
        for leaf in self.leaves:
            leaf.open()


def encoded(context: SessionContext, plan: LogicalPlan) -> bytes:
    """The plan as Substrait. Raises PlanError where that cannot carry it."""
    if _FUNCTION.search(plan.display_indent()):
        raise PlanError("a table function cannot be expressed in Substrait")
    left_out = lost(plan.display_indent())
    if left_out is not None:
        raise PlanError(f"{left_out} cannot be expressed in Substrait")
    try:
        data = Producer.to_substrait_plan(plan, context).encode()
    except Exception as problem:  # DataFusion raises plain Exceptions here
        raise PlanError(str(problem)) from problem
    if has_lost_types(data):
        raise PlanError("a column of a type that cannot be expressed in Substrait")
    return data


def twin(frame: Frame, *, parts: bool) -> Twin:
    """The frame over opaque leaves, also such over ``parts``. Raises PlanError if there is none that
    does the same."""
    cutting = _Cutting(frame.session, type(frame), parts=parts)
    try:
        made = cutting.frame(frame)
    except PlanError:
        raise
    except Exception as problem:  # a verb or a text that does not go with the leaves
        raise PlanError(str(problem)) from problem
    _check(frame, made, cutting.leaves)
    plan = DataFrame.logical_plan(made).display_indent()
    if not all(above.leaf.name in plan for above in cutting.above):
        raise PlanError("calls below what Substrait cannot express, inside one another")
    return Twin(made, tuple(cutting.leaves), tuple(cutting.above))


def _check(frame: Frame, made: DataFrame, leaves: Sequence[Leaf]) -> None:
    wanted, got = frame.schema(), made.schema()
    same = len(wanted) == len(got) and all(
        a.type == b.type or surviving_type(a.type) == b.type
        for a, b in zip(wanted, got, strict=True)
    )
    if not same:
        raise PlanError("a result that depends on a type that Substrait cannot express")
    if any(leaf.retyped for leaf in leaves):
        text = DataFrame.logical_plan(made).display_indent()
        if "arrow_typeof(" in text:
            raise PlanError("arrow_typeof over a type that Substrait cannot express")


class _State(Enum):
    FINE = "Substrait carries it"
    CUT = "it does not, and nothing in it asks"
    INSIDE = "it does not, and something in it asks, or it does not stand alone"


class _Cutting:
    """The cutting of one frame. ``leaves`` are those that were made."""

    def __init__(self, session: Session, frames: type[Frame], *, parts: bool) -> None:
        self._session = session
        self._parts = parts
        self._frames = frames
        self.leaves: list[Leaf] = []
        self.above: list[Above] = []
        self._known: dict[str, tuple[_State, DataFrame | None]] = {}
        self._leaves: dict[tuple[str, str], Leaf] = {}
        self._twins: dict[int, DataFrame] = {}

    # --- frames ----------------------------------------------------------------------------------

    def frame(self, frame: Frame) -> DataFrame:
        if id(frame) not in self._twins:
            self._twins[id(frame)] = self._frame(frame)
        return self._twins[id(frame)]

    def _frame(self, frame: Frame) -> DataFrame:
        if self._state(frame) is _State.FINE:
            return DataFrame(frame.df)
        origin = frame.origin
        if isinstance(origin, Verb):
            made = self._verb(origin)
            if self._state(made) is _State.FINE:
                return made
            return self._framed(frame, QUERIES, _said(origin))
        if isinstance(origin, Text):
            made = self._text(origin)
            if self._state(made) is _State.FINE:
                return made
            return self._framed(frame, QUERIES, _squeezed(origin.sql))
        return self._framed(frame, TABLES, _qualifier(frame) or "frame")

    def _verb(self, verb: Verb) -> DataFrame:
        args = [self._argument(a) for a in verb.args]
        kwargs = {name: self._argument(a) for name, a in verb.kwargs.items()}
        return verb.method(self.frame(verb.below), *args, **kwargs)

    def _argument(self, value: Any) -> Any:
        return self.frame(value) if isinstance(value, self._frames) else value

    def _framed(self, frame: Frame, schema: str, text: str) -> DataFrame:
        origin = frame.origin
        if not _calls(frame):
            leaf = self._leaf(DataFrame(frame.df), schema, text)
        elif isinstance(origin, Verb):
            leaf = self._above_frame(origin)
        elif isinstance(origin, Text):
            leaf = self.above_parts(origin, origin.sql)
        else:
            raise PlanError("calls below what Substrait cannot express")
        table = SessionContext.table(self._session, leaf.sql)
        qualifier = _qualifier(frame)
        return table.alias(qualifier) if qualifier else table

    def _leaf(self, frame: DataFrame, schema: str, text: str) -> Leaf:
        leaf = self._session.leaf_maker.make(frame, schema, text)
        self.leaves.append(leaf)
        return leaf

    def _state(self, frame: DataFrame) -> _State:
        plan = DataFrame.optimized_logical_plan(frame)
        try:
            encoded(self._session, plan)
        except PlanError:
            return _State.INSIDE if calls_in(plan.display_indent()) else _State.CUT
        return _State.FINE

    # --- parts -----------------------------------------------------------------------------------

    def _above_frame(self, verb: Verb) -> Leaf:
        """A leaf of what a verb makes of a frame with calls, which is a part."""
        if not self._parts:
            raise PlanError("calls below what Substrait cannot express")
        qualifier = _qualifier(verb.below)

        def plan(tables: Sequence[str]) -> DataFrame:
            table = SessionContext.table(self._session, tables[0])
            below = table.alias(qualifier) if qualifier else table
            return verb.method(below, *verb.args, **verb.kwargs)

        return self._above([verb.below], plan, lambda tables: f"{_said(verb)} of {tables[0]}")

    def above_parts(self, made: Text, sql: str) -> Leaf:
        """A leaf of a query over parts that have its calls. Raises PlanError if it has no such form."""
        if not self._parts:
            raise PlanError("calls below what Substrait cannot express")
        frames: list[Frame] = []

        def take(inner: str) -> str | None:
            try:
                frame = self.plan(made, inner)
                if not calls_in(DataFrame.optimized_logical_plan(frame).display_indent()):
                    return None
                part = self._frames(frame.df, self._session, replace(made, sql=inner))
                if part.prepare(parts=False).staged is None:
                    return None
            except Exception:  # not a query of its own, or none that can be staged
                return None
            frames.append(part)
            return _SLOT.format(len(frames) - 1)

        rest = split(sql, take)

        def filled(tables: Sequence[str]) -> str:
            query = rest
            for i, table in enumerate(tables):
                query = query.replace(_SLOT.format(i), table)
            return query

        return self._above(
            frames, lambda tables: self.plan(made, filled(tables)), lambda tables: filled(tables)
        )

    def _above(
        self,
        frames: Sequence[Frame],
        plan: Callable[[Sequence[str]], DataFrame],
        said: Callable[[Sequence[str]], str],
    ) -> Leaf:
        """A leaf of ``plan`` over the tables of parts; ``said`` tells what it is, over theirs."""
        if not frames:
            raise PlanError("calls below what Substrait cannot express")
        whole = [self._part(frame) for frame in frames]
        scanned = DataFrame.optimized_logical_plan(plan([part.leaf.sql for part in whole]))
        parts = tuple(
            self._part(_narrowed(frame, part, scanned))
            for frame, part in zip(frames, whole, strict=True)
        )
        frame = plan([part.leaf.sql for part in parts])
        if _calls(frame):
            raise PlanError("calls below what Substrait cannot express")
        numbers, ran = [], sum(len(p.staged.stages) for a in self.above for p in a.parts)
        for part in parts:
            ran += len(part.staged.stages)
            numbers.append(f"stage {ran}")
        leaf = self._leaf(frame, QUERIES, _squeezed(said(numbers)))
        self.leaves += [part.leaf for part in parts]
        self.leaves += [known for part in parts for known in part.leaves]
        self.above.append(Above(leaf, parts, plan))
        return leaf

    def _part(self, frame: Frame) -> Part:
        schema = frame.schema()
        if len(set(schema.names)) < len(schema.names):
            raise PlanError("columns of one name below what Substrait cannot express")
        prepared = frame.prepare(parts=False)
        if prepared.staged is None:
            raise PlanError("calls below what Substrait cannot express")
        leaf = self._session.leaf_maker.placeholder(schema, "part")
        return Part(prepared.staged, schema, leaf, prepared.leaves)

    # --- SQL -------------------------------------------------------------------------------------

    def _text(self, made: Text) -> DataFrame:
        return self.plan(made, self.cut_out(made))

    def cut_out(self, made: Text) -> str:
        """The text with the names of leaves in the place of what they stand for."""
        tokens = tokenize(made.sql)
        found = queries(tokens)
        if len(found) != 1 or found[0].start != 0:
            raise PlanError("a statement that is no query, or one that is not understood")
        cuts = _Cuts(self, made, tokens)
        cuts.query(found[0], Scope())
        return edited(made.sql, tokens, cuts.edits)

    def view(self, written: str, name: str) -> str | None:
        """The query of the view that is ``written`` in SQL, with leaves in it; None if it has no
        calls, or is not known as it is now."""
        query = self._session.views.query(written)
        if query is None:
            return None
        made = Text(query, None, None, {})
        again = f"SELECT * FROM ({query}) AS {quoted_name(name)}"
        plans = (self.plan(made, sql) for sql in (again, f"SELECT * FROM {written}"))
        known, now = (DataFrame.optimized_logical_plan(p).display_indent() for p in plans)
        return self.cut_out(made) if known == now else None

    def plan(self, made: Text, sql: str) -> DataFrame:
        """A frame of a part of a query, with the query's parameters."""
        parameters = None if made.parameters is None else dict(made.parameters)
        return SessionContext.sql(self._session, sql, made.options, parameters, **made.named)

    def examine(self, made: Text, sql: str) -> tuple[_State, DataFrame | None]:
        """What ``sql`` is, standing alone."""
        if sql not in self._known:
            try:
                frame = self.plan(made, sql)
                self._known[sql] = self._state(frame), frame
            except Exception:  # not a query of its own: it reads what is around it
                self._known[sql] = _State.INSIDE, None
        return self._known[sql]

    def leaf_of(self, sql: str, frame: DataFrame, schema: str, text: str) -> Leaf:
        """The leaf of a part; one for equal parts, so that equal plans stay equal."""
        key = (schema, sql)
        if key not in self._leaves:
            self._leaves[key] = self._leaf(frame, schema, text)
        return self._leaves[key]


class _Cuts:
    """Cuts out of one text. ``edits`` put the names of leaves in the place of what they stand for."""

    def __init__(self, cutting: _Cutting, made: Text, tokens: Sequence[Token]) -> None:
        self._cutting = cutting
        self._made = made
        self._tokens = tokens
        self.edits: list[tuple[int, int, str]] = []

    def query(self, query: Query, scope: Scope) -> None:
        for common in query.common:
            outer = scope
            scope = scope.and_then(common, recursive=query.recursive)
            body = common.query
            name = self._span(common.name, common.name + 1)
            whole = f"{self._with(scope)}SELECT * FROM {name}"
            text = _squeezed(
                f"WITH {'RECURSIVE ' * query.recursive}{self._span(common.name, common.end)}"
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
        for source in select.sources:
            self._source(source, scope)
        for inner in select.inner:
            self._subquery(inner, scope)

    def _using(self, select: Select, whole: Query | Select, scope: Scope) -> None:
        """Write outer joins with USING, which Substrait does not carry, with ON: where no column of
        theirs is read by its name alone, nor by a star."""
        for at, source in enumerate(select.sources):
            if source.on is None or not {"LEFT", "RIGHT", "FULL"} & set(source.words):
                continue
            tokens = self._tokens
            names = [identifier(t) for t in tokens[source.on[0] + 2 : source.on[1] - 1 : 2]]
            right = name_of(source, tokens)
            if word(tokens[source.on[0]]) != "USING" or right is None:
                continue
            pairs = [self._having(n, select.sources[:at], scope) for n in names]
            if None in pairs or reads_bare(tokens, whole, select, {*names, "*"}):
                continue
            terms = (
                f"{quoted_name(left or '')}.{quoted_name(n)} = {quoted_name(right)}.{quoted_name(n)}"
                for left, n in zip(pairs, names, strict=True)
            )
            self.edits.append((*source.on, f"ON {' AND '.join(terms)}"))

    def _having(self, column: str, sources: Sequence[Source], scope: Scope) -> str | None:
        """The name of the one relation among ``sources`` with this column; None if there is none."""
        found = []
        for source in sources:
            sql = f"{self._with(scope)}SELECT * FROM {self._span(source.start, source.stop)}"
            frame = self._cutting.examine(self._made, sql)[1]
            if frame is None:
                return None
            if column in frame.schema().names:
                found.append(name_of(source, self._tokens))
        return found[0] if len(found) == 1 else None

    def _subquery(self, query: Query, scope: Scope) -> None:
        if not self._cut_span(query, scope, "SELECT * FROM {}"):
            self.query(query, scope)
            self._settle_span(query, scope)

    def _source(self, source: Source, scope: Scope) -> None:
        span = source.start, source.end
        text = self._span(*span)
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
            self._cut(f"{self._with(scope)}SELECT * FROM {text}", _squeezed(text), span, "{}")
            return
        if source.end == source.start + 1 and self._is_common(source.start, scope):
            return
        name = identifier(self._tokens[source.end - 1])
        alias = "" if source.alias is not None else f" AS {quoted_name(name)}"
        if not self._cut(f"SELECT * FROM {text}", name, span, "{}" + alias, schema=TABLES):
            view = self._cutting.view(text, name)
            if view is not None:
                self.edits.append((*span, f"({view}){alias}"))

    def _is_common(self, at: int, scope: Scope) -> bool:
        name = identifier(self._tokens[at])
        return any(identifier(self._tokens[c.name]) == name for c in scope.common)

    def _cut_span(
        self,
        part: Query | Select,
        scope: Scope,
        written: str,
        span: tuple[int, int] | None = None,
    ) -> bool:
        text = self._span(part.start, part.end)
        whole = span or (part.start, part.end)
        return self._cut(self._with(scope) + text, _squeezed(text), whole, written)

    def _cut(
        self, sql: str, text: str, span: tuple[int, int], written: str, schema: str = QUERIES
    ) -> bool:
        """Settle the part that is ``sql`` by itself; False if there is still something in it to do.

        ``written`` is what stands in its place, around the name of the leaf.
        """
        state, frame = self._cutting.examine(self._made, sql)
        if state is not _State.CUT or frame is None:
            return state is _State.FINE
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
        whole = self._with(scope) + self._span(*inside)
        now = self._with_edited(scope) + self._edited(*inside)
        self._settle(whole, now, span or inside, written)

    def _settle(self, sql: str, now: str, span: tuple[int, int], written: str) -> None:
        """Where a part of the text, ``now`` with what is cut out, still is nothing that Substrait
        carries: make a leaf of it above parts that have its calls, if it has that form."""
        state, frame = self._cutting.examine(self._made, now)
        if state is not _State.INSIDE or frame is None:
            return
        try:
            leaf = self._cutting.above_parts(self._made, sql)
        except PlanError:
            return
        self.edits = [e for e in self.edits if not (span[0] <= e[0] and e[1] <= span[1])]
        self.edits.append((*span, written.replace("{}", leaf.sql, 1)))

    def _with(self, scope: Scope) -> str:
        return scope.text(self._made.sql, self._tokens)

    def _with_edited(self, scope: Scope) -> str:
        if not scope.common:
            return ""
        listed = ", ".join(self._edited(common.name, common.end) for common in scope.common)
        return f"WITH {'RECURSIVE ' * scope.recursive}{listed} "

    def _edited(self, start: int, end: int) -> str:
        """A part of the text with what is cut out of it so far."""
        inside = [(a - start, b - start, t) for a, b, t in self.edits if start <= a and b <= end]
        first = self._tokens[start].start
        tokens = self._tokens[start:end]
        return edited(self._span(start, end), tokens, inside, offset=first)

    def _span(self, start: int, end: int) -> str:
        tokens = self._tokens
        return self._made.sql[tokens[start].start : tokens[end - 1].end + 1]


def _calls(frame: DataFrame) -> bool:
    return bool(calls_in(DataFrame.logical_plan(frame).display_indent()))


def _narrowed(frame: Frame, part: Part, plan: LogicalPlan) -> Frame:
    """The frame with only those columns that ``plan`` reads of the table of its part."""
    read: set[str] = set()
    scans, waiting = 0, [plan]
    while waiting:
        below = waiting.pop()
        waiting += below.inputs()
        variant = below.to_variant()
        if type(variant).__name__ == "TableScan" and variant.fqn()[-1] == part.leaf.name:
            read.update(name for _, name in variant.projection())
            scans += 1
    names = [name for name in part.schema.names if name in read] or part.schema.names[:1]
    if scans != plan.display_indent().count(part.leaf.name + " projection="):
        return frame  # one stands in a subquery
    return frame.select(*map(quoted_name, names))


def _qualifier(frame: DataFrame) -> str | None:
    """The name by which all columns of a frame may be qualified; None if there is no such name."""
    plan: LogicalPlan = DataFrame.logical_plan(frame)
    while True:
        variant = plan.to_variant()
        kind = type(variant).__name__
        if kind == "TableScan":
            return str(variant.table_name())
        if kind == "SubqueryAlias":
            return str(variant.alias())
        below = plan.inputs()
        if kind in ("Join", "Union", "Aggregate", "Values") or len(below) != 1:
            return None
        plan = below[0]


def _said(verb: Verb) -> str:
    given = [repr(a) for a in verb.args if isinstance(a, str)]
    return _squeezed(f"{verb.method.__name__}({', '.join(given)})")


def _squeezed(text: str) -> str:
    # A dollar would be read as a parameter of the query.
    line = " ".join(readable(text).replace("$", "").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
