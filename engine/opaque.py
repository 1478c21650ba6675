"""A frame once more, with what Substrait cannot carry as opaque leaves.

Of a frame's plan the parts that Substrait refuses and that ask no model are cut out: from SQL text
its common table expressions, derived tables, tables and subqueries; from frames the verb that
brings them in. What is left is an ordinary plan with calls, and rules work on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame, SessionContext, SQLOptions
from datafusion.plan import LogicalPlan
from datafusion.substrait import Producer

from blendfusion.callsites import tokenize
from blendfusion.clauses import Query, Scope, Select, Source, identifier, queries
from blendfusion.errors import PlanError
from blendfusion.lateral import edited, quoted_name
from blendfusion.leaves import Leaf, surviving_type
from blendfusion.planner.leaf import QUERIES, TABLES
from blendfusion.planner.plan import has_lost_types
from blendfusion.udfs.call import calls_in

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

    from blendfusion.frame import Frame
    from blendfusion.session import Session

_FUNCTION = re.compile(r"TableScan: [^ ]*\(\)")
"""A table function: Substrait would name it as a table, which nobody knows."""
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

    def open(self) -> None:
        """To be called when it is planned: from then on the leaves are read as what they are."""
        for leaf in self.leaves:
            leaf.open()


def encoded(context: SessionContext, plan: LogicalPlan) -> bytes:
    """The plan as Substrait. Raises PlanError where that cannot carry it."""
    if _FUNCTION.search(plan.display_indent()):
        raise PlanError("a table function cannot be expressed in Substrait")
    try:
        data = Producer.to_substrait_plan(plan, context).encode()
    except Exception as problem:  # DataFusion raises plain Exceptions here
        raise PlanError(str(problem)) from problem
    if has_lost_types(data):
        raise PlanError("a column of a type that cannot be expressed in Substrait")
    return data


def twin(frame: Frame) -> Twin:
    """The frame over opaque leaves. Raises PlanError if there is none that does the same."""
    cutting = _Cutting(frame.session, type(frame))
    try:
        made = cutting.frame(frame)
    except PlanError:
        raise
    except Exception as problem:  # a verb or a text that does not go with the leaves
        raise PlanError(str(problem)) from problem
    _check(frame, made, cutting.leaves)
    return Twin(made, tuple(cutting.leaves))


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

    def __init__(self, session: Session, frames: type[Frame]) -> None:
        self._session = session
        self._frames = frames
        self.leaves: list[Leaf] = []
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
        if _calls(frame):
            raise PlanError("calls below what Substrait cannot express")
        leaf = self._leaf(DataFrame(frame.df), schema, text)
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

    # --- SQL -------------------------------------------------------------------------------------

    def _text(self, made: Text) -> DataFrame:
        tokens = tokenize(made.sql)
        found = queries(tokens)
        if len(found) != 1 or found[0].start != 0:
            raise PlanError("a statement that is no query, or one that is not understood")
        cuts = _Cuts(self, made, tokens)
        cuts.query(found[0], Scope())
        return self.plan(made, edited(made.sql, tokens, cuts.edits))

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
            if not self._cut(whole, text, (body.start, body.end), "SELECT * FROM {}"):
                self.query(body, outer)
        for branch in query.branches:
            alone = len(query.branches) == 1 and isinstance(branch, Select)
            if alone or not self._cut_span(branch, scope, "SELECT * FROM {}"):
                if isinstance(branch, Query):
                    self.query(branch, scope)
                else:
                    self._select(branch, scope)
        for inner in query.inner:
            self._subquery(inner, scope)

    def _select(self, select: Select, scope: Scope) -> None:
        for source in select.sources:
            self._source(source, scope)
        for inner in select.inner:
            self._subquery(inner, scope)

    def _subquery(self, query: Query, scope: Scope) -> None:
        if not self._cut_span(query, scope, "SELECT * FROM {}"):
            self.query(query, scope)

    def _source(self, source: Source, scope: Scope) -> None:
        span = source.start, source.end
        text = self._span(*span)
        if source.query is not None:
            if source.lateral or not self._cut_span(source.query, scope, "{}", span):
                self.query(source.query, scope)
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
        self._cut(f"SELECT * FROM {text}", name, span, "{}" + alias, schema=TABLES)

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

    def _with(self, scope: Scope) -> str:
        return scope.text(self._made.sql, self._tokens)

    def _span(self, start: int, end: int) -> str:
        tokens = self._tokens
        return self._made.sql[tokens[start].start : tokens[end - 1].end + 1]


def _calls(frame: DataFrame) -> bool:
    return bool(calls_in(DataFrame.logical_plan(frame).display_indent()))


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
    line = " ".join(text.replace("$", "").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
