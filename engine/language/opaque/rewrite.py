"""Rebuilds a frame with opaque tables in the place of plans that Substrait cannot carry.

The parts of a frame's plan that Substrait refuses and that contain no call are cut out: common
table expressions, derived tables, tables and subqueries from SQL text; the verb that introduces
them from frames. The rest is an ordinary plan with calls, to which rules apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.plan import LogicalPlan

from blendfusion.datafusion.bridge import through_substrait
from blendfusion.errors import PlanError
from blendfusion.language.opaque.cut_subqueries import Cuts, State, one_line
from blendfusion.language.opaque.nested_stages import Above, Part
from blendfusion.language.opaque.opaque_tables import Leaf, surviving_type
from blendfusion.language.opaque.split_query import split
from blendfusion.language.query_text.query_tree import Scope
from blendfusion.language.query_text.window_filters import filters_as_cases
from blendfusion.planner.ir.opaque_names import QUERIES, TABLES
from blendfusion.run.hooks import BaseFrame, Text, Verb
from blendfusion.udfs.declare.arguments import quoted_name
from blendfusion.udfs.declare.call_registry import calls_in

_ARITHMETIC = re.compile(
    r" [*/%+-] |\b(sum|avg|mean|round|power|sqrt|var|stddev)\w*\(", re.IGNORECASE
)
"""Operations that give decimals of another width other digits."""
_SLOT = "__blendfusion_part_{}"


@dataclass(frozen=True, slots=True)
class EquivalentFrame:
    """A frame with the same result, by position, whose plan Substrait can carry."""

    frame: DataFrame
    leaves: tuple[Leaf, ...]
    above: tuple[Above, ...] = ()
    """The leaves above parts with calls."""

    def open(self) -> None:
        """Call it after planning: the leaves are then read as their plans."""
        for leaf in self.leaves:
            leaf.open()


@dataclass(slots=True)
class _Memory:
    """The parts of the query at hand: each is tried in several ways, also within other parts."""

    plans: dict[tuple[int, str], tuple[Text, DataFrame | Exception]] = field(default_factory=dict)
    states: dict[int, tuple[DataFrame, State]] = field(default_factory=dict)


_MEMORY: ContextVar[_Memory | None] = ContextVar("memory", default=None)


@contextmanager
def _remembering() -> Iterator[None]:
    """Keeps what is planned inside the outermost of these."""
    if _MEMORY.get() is not None:
        yield
        return
    token = _MEMORY.set(_Memory())
    try:
        yield
    finally:
        _MEMORY.reset(token)


def twin(frame: BaseFrame, *, parts: bool) -> EquivalentFrame:
    """The frame over opaque tables, with ``parts`` also over nested stages. Raises PlanError if no
    equivalent exists."""
    with _remembering():
        try:
            made, cutting = _make(frame, parts=parts, predicates=False)
        except PlanError:
            made, cutting = _make(frame, parts=parts, predicates=True)
    plan = DataFrame.logical_plan(made).display_indent()
    if not all(above.leaf.name in plan for above in cutting.above):
        raise PlanError("calls below what Substrait cannot express, inside one another")
    return EquivalentFrame(made, tuple(cutting.leaves), tuple(cutting.above))


def remake(frame: BaseFrame, change: Callable[[str], str]) -> DataFrame:
    """A frame made as ``frame`` was, of texts that are changed."""
    origin = frame.origin
    if isinstance(origin, Verb):
        changed = [remake(a, change) if isinstance(a, BaseFrame) else a for a in origin.args]
        return origin.method(remake(origin.below, change), *changed, **origin.kwargs)
    if isinstance(origin, Text):
        return Cutting(frame, parts=False, predicates=False).plan(origin, change(origin.sql))
    return DataFrame(frame.df)


def _make(frame: BaseFrame, *, parts: bool, predicates: bool) -> tuple[DataFrame, Cutting]:
    cutting = Cutting(frame, parts=parts, predicates=predicates)
    try:
        made = cutting.frame(frame)
        through_substrait(frame.engine.tables, DataFrame.optimized_logical_plan(made))
    except PlanError:
        raise
    except Exception as problem:  # a verb or a text that does not work over the leaves
        raise PlanError(str(problem)) from problem
    _check(frame, made, cutting.leaves)
    return made, cutting


def _check(frame: BaseFrame, made: DataFrame, leaves: Sequence[Leaf]) -> None:
    wanted, got = DataFrame.schema(frame), made.schema()
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
        if any(pa.types.is_null(kind) for leaf in leaves for kind in leaf.retyped):
            plans = (DataFrame.optimized_logical_plan(each) for each in (frame, made))
            before, after = (plan.display_indent().count("AS Utf8") for plan in plans)
            if after > before:
                raise PlanError("text made of numbers beside a column without a type")
        if any(leaf.rounds for leaf in leaves) and _ARITHMETIC.search(text):
            raise PlanError("arithmetic with decimals of another width than 128 bits")


class Cutting:
    """The division of one frame. ``leaves`` are the created ones."""

    def __init__(self, frame: BaseFrame, *, parts: bool, predicates: bool) -> None:
        self._engine = frame.engine
        self._whole = frame
        self._parts = parts
        self.predicates = predicates
        """Whether predicates that Substrait refuses go into the leaves of their tables."""
        self.leaves: list[Leaf] = []
        self.above: list[Above] = []
        self._known: dict[str, tuple[State, DataFrame | None]] = {}
        self._leaves: dict[tuple[str, str], Leaf] = {}
        self._twins: dict[int, DataFrame] = {}

    # --- frames ----------------------------------------------------------------------------------

    def frame(self, frame: BaseFrame) -> DataFrame:
        if id(frame) not in self._twins:
            self._twins[id(frame)] = self._frame(frame)
        return self._twins[id(frame)]

    def _frame(self, frame: BaseFrame) -> DataFrame:
        if self._state(frame) is State.FINE:
            return DataFrame(frame.df)
        origin = frame.origin
        if isinstance(origin, Verb):
            made = self._verb(origin)
            if self._state(made) is State.FINE:
                return made
            return self._replace_frame(frame, QUERIES, _verb_text(origin))
        if isinstance(origin, Text):
            cases = filters_as_cases(origin.sql)
            if cases != origin.sql:
                origin = replace(origin, sql=cases)
                made = self.plan(origin, cases)
                if self._state(made) is State.FINE:
                    return made
            made = self._text(origin)
            if self._state(made) is State.FINE:
                return made
            return self._replace_frame(frame, QUERIES, one_line(origin.sql))
        return self._replace_frame(frame, TABLES, _qualifier(frame) or "frame")

    def _verb(self, verb: Verb) -> DataFrame:
        args = [self._argument(a) for a in verb.args]
        kwargs = {name: self._argument(a) for name, a in verb.kwargs.items()}
        return verb.method(self.frame(verb.below), *args, **kwargs)

    def _argument(self, value: Any) -> Any:
        return self.frame(value) if isinstance(value, BaseFrame) else value

    def _replace_frame(self, frame: BaseFrame, schema: str, text: str) -> DataFrame:
        origin = frame.origin
        if not _calls(frame):
            leaf = self._leaf(DataFrame(frame.df), schema, text)
        elif isinstance(origin, Verb):
            leaf = self._above_frame(origin)
        elif isinstance(origin, Text):
            leaf = self.above_parts(origin, origin.sql, whole=frame is self._whole)
        else:
            raise PlanError("calls below what Substrait cannot express")
        table = SessionContext.table(self._engine.tables, leaf.sql)
        qualifier = _qualifier(frame)
        return table.alias(qualifier) if qualifier else table

    def _leaf(self, frame: DataFrame, schema: str, text: str) -> Leaf:
        leaf = self._engine.tables.leaf_maker.make(frame, schema, text)
        self.leaves.append(leaf)
        return leaf

    def _state(self, frame: DataFrame) -> State:
        memory = _MEMORY.get() or _Memory()
        if id(frame) not in memory.states:
            memory.states[id(frame)] = frame, self._found_state(frame)
        return memory.states[id(frame)][1]

    def _found_state(self, frame: DataFrame) -> State:
        plan = DataFrame.optimized_logical_plan(frame)
        try:
            through_substrait(self._engine.tables, plan)
        except PlanError:
            return State.INSIDE if calls_in(plan.display_indent()) else State.CUT
        # Literals of such types have no form in Substrait, and are met above the part.
        retyped = any(surviving_type(field.type) != field.type for field in frame.schema())
        return State.CUT if retyped and not calls_in(plan.display_indent()) else State.FINE

    # --- parts -----------------------------------------------------------------------------------

    def _above_frame(self, verb: Verb) -> Leaf:
        """A leaf over the result of a verb on a frame with calls, which becomes a part."""
        if not self._parts:
            raise PlanError("calls below what Substrait cannot express")
        qualifier = _qualifier(verb.below)

        def plan(tables: Sequence[str]) -> DataFrame:
            table = SessionContext.table(self._engine.tables, tables[0])
            below = table.alias(qualifier) if qualifier else table
            return verb.method(below, *verb.args, **verb.kwargs)

        return self._above([verb.below], plan, lambda tables: f"{_verb_text(verb)} of {tables[0]}")

    def above_parts(self, made: Text, sql: str, *, whole: bool = False) -> Leaf:
        """A leaf of a query over parts with its calls. Raises PlanError if impossible."""
        if not self._parts:
            raise PlanError("calls below what Substrait cannot express")
        frames: list[BaseFrame] = []

        def take(inner: str) -> str | None:
            try:
                frame = self.plan(made, inner)
                if not calls_in(DataFrame.optimized_logical_plan(frame).display_indent()):
                    return None
                part = self._engine.tables.new_frame(frame, replace(made, sql=inner))
                if part.prepare(parts=False).staged is None:
                    return None
            except Exception:  # not a query by itself, or one that cannot be staged
                return None
            frames.append(part)
            return _SLOT.format(len(frames) - 1)

        rest = split(sql, take, whole=whole)

        def fill(tables: Sequence[str]) -> str:
            query = rest
            for i, table in enumerate(tables):
                query = query.replace(_SLOT.format(i), table)
            return query

        return self._above(
            frames, lambda tables: self.plan(made, fill(tables)), lambda tables: fill(tables)
        )

    def _above(
        self,
        frames: Sequence[BaseFrame],
        plan: Callable[[Sequence[str]], DataFrame],
        text_of: Callable[[Sequence[str]], str],
    ) -> Leaf:
        """A leaf of ``plan`` over the tables of parts; ``text_of`` describes it in their terms."""
        if not frames:
            raise PlanError("calls below what Substrait cannot express")
        whole = [self._part(frame) for frame in frames]
        scanned = DataFrame.optimized_logical_plan(plan([part.leaf.sql for part in whole]))
        parts = tuple(
            self._part(_narrow(frame, part, scanned))
            for frame, part in zip(frames, whole, strict=True)
        )
        frame = plan([part.leaf.sql for part in parts])
        if _calls(frame):
            raise PlanError("calls below what Substrait cannot express")
        numbers, ran = [], sum(len(p.staged.stages) for a in self.above for p in a.parts)
        for part in parts:
            ran += len(part.staged.stages)
            numbers.append(f"stage {ran}")
        leaf = self._leaf(frame, QUERIES, one_line(text_of(numbers)))
        self.leaves += [part.leaf for part in parts]
        self.leaves += [known for part in parts for known in part.leaves]
        self.above.append(Above(leaf, parts, plan))
        return leaf

    def _part(self, frame: BaseFrame) -> Part:
        schema = frame.schema()
        if len(set(schema.names)) < len(schema.names):
            raise PlanError("columns of one name below what Substrait cannot express")
        prepared = frame.prepare(parts=False)
        if prepared.staged is None:
            raise PlanError("calls below what Substrait cannot express")
        leaf = self._engine.tables.leaf_maker.placeholder(schema, "part")
        return Part(prepared.staged, schema, leaf, prepared.leaves)

    # --- SQL -------------------------------------------------------------------------------------

    def _text(self, made: Text) -> DataFrame:
        return self.plan(made, self.cut_out(made))

    def cut_out(self, made: Text) -> str:
        """The text with parts replaced by the names of their leaves."""
        cuts = Cuts(self, made)
        found = cuts.reader.outer
        if len(found) != 1 or found[0].start != 0:
            raise PlanError("a statement that is no query, or one that is not understood")
        cuts.query(found[0], Scope())
        return cuts.reader.edit(cuts.edits)

    def view(self, written: str, name: str) -> str | None:
        """The query of the view that SQL names ``written``, with leaves in it; None if it has no
        calls, or has changed."""
        query = self._engine.tables.views.query(written)
        if query is None:
            return None
        made = Text(query, None, None, {})
        again = f"SELECT * FROM ({query}) AS {quoted_name(name)}"
        plans = (self.plan(made, sql) for sql in (again, f"SELECT * FROM {written}"))
        known, now = (DataFrame.optimized_logical_plan(p).display_indent() for p in plans)
        return self.cut_out(made) if known == now else None

    def plan(self, made: Text, sql: str) -> DataFrame:
        """A frame of a part of a query, with the query's parameters."""
        memory = _MEMORY.get() or _Memory()
        key = id(made.named), sql  # which the parts of one text share
        if key not in memory.plans:
            memory.plans[key] = made, self._plan(made, sql)
        found = memory.plans[key][1]
        if isinstance(found, Exception):
            raise found
        return found

    def _plan(self, made: Text, sql: str) -> DataFrame | Exception:
        parameters = None if made.parameters is None else dict(made.parameters)
        try:
            return SessionContext.sql(
                self._engine.tables, sql, made.options, parameters, **made.named
            )
        except Exception as problem:  # not a query by itself
            return problem

    def examine(self, made: Text, sql: str) -> tuple[State, DataFrame | None]:
        """The state of ``sql`` as a separate query."""
        if sql not in self._known:
            try:
                frame = self.plan(made, sql)
                self._known[sql] = self._state(frame), frame
            except Exception:  # not a query by itself: it reads its surroundings
                self._known[sql] = State.INSIDE, None
        return self._known[sql]

    def leaf_of(self, sql: str, frame: DataFrame, schema: str, text: str) -> Leaf:
        """The leaf of a part; equal parts share one, so that equal plans stay equal."""
        key = (schema, sql)
        if key not in self._leaves:
            self._leaves[key] = self._leaf(frame, schema, text)
        return self._leaves[key]


def _calls(frame: DataFrame) -> bool:
    return bool(calls_in(DataFrame.logical_plan(frame).display_indent()))


def _narrow(frame: BaseFrame, part: Part, plan: LogicalPlan) -> BaseFrame:
    """The frame with only the columns that ``plan`` reads from the table of its part."""
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
        return frame  # it occurs in a subquery
    return frame.select(*map(quoted_name, names))


def _qualifier(frame: DataFrame) -> str | None:
    """The name that may qualify all columns of a frame; None without one."""
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


def _verb_text(verb: Verb) -> str:
    given = [repr(a) for a in verb.args if isinstance(a, str)]
    return one_line(f"{verb.method.__name__}({', '.join(given)})")
