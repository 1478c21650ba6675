"""Runs a staged plan on samples of its sources, with guesses instead of answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from datafusion import DataFrame, SessionContext, lit
from datafusion import functions as f

from blendfusion.language.opaque.nested_stages import StoredParts
from blendfusion.models.embedders.cache import UnknownVectorError
from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import boolean_literal, project
from blendfusion.planner.ir.builders import limit_rows as fetched
from blendfusion.planner.ir.nodes import (
    COMPUTES,
    Ask,
    Block,
    Expr,
    Node,
    Plan,
    Rel,
    StoredRows,
    asks,
    asks_model,
    is_volatile,
)
from blendfusion.planner.ir.traversal import expressions, subplans, transform
from blendfusion.planner.stages.split import Stage, StagedPlan
from blendfusion.planner.stages.supersets import superset
from blendfusion.run.execution.executor import Execution, stream
from blendfusion.run.execution.expressions import Rows, RowWise
from blendfusion.run.execution.pipeline import Chunks
from blendfusion.run.execution.row_codes import Column
from blendfusion.services.decided_groups.decided_groups import rows_of_decided_groups
from blendfusion.services.decided_groups.group_states import GroupStates
from blendfusion.services.estimates.sampling import MOST_ROWS, Sample, any_rows, first_rows
from blendfusion.services.estimates.simulated_model import Share, SimulatedDispatcher, Tally, digest
from blendfusion.services.estimates.value_bounds import (
    NO_BOUNDS,
    StageBounds,
    ValueBounds,
    most_of_rows,
)
from blendfusion.udfs.evaluate.evaluate import evaluate

if TYPE_CHECKING:
    from blendfusion.options import Options
    from blendfusion.run.execution.scratch_context import Workbench

ASSUMED_PASS_RATE = 0.5
"""Assumed share of true comparisons with unknown answers."""
SORTED_ROWS = 10_000
"""Maximum rows to sort for a limit."""


class DryRows(RowWise):
    """Row-wise evaluation in which every call is guessed and counted, with the real gates."""

    def __init__(self, simulated: SimulatedDispatcher, workbench: Callable[[], Workbench]) -> None:
        super().__init__(simulated, workbench)
        self.simulated = simulated
        self.tallies: dict[Ask, Tally] = {}
        """The counts of the current stage's calls."""
        self.keep_arguments = False
        self._looks = False
        """Whether rows are looked at, before they reach their calls."""
        self._shares: dict[Expr, Share] = {}

    def column(self, expr: Expr, rows: Rows) -> Column:
        if not isinstance(expr, Ask) or expr in rows.known:
            return super().column(expr, rows)
        if not asks_model(expr):
            return self._placeholders(expr, rows)
        arguments = [self.argument(a, rows, expr.call) for a in expr.args]
        tally = self.simulated.tally = self.tallies.setdefault(expr, Tally())
        self.simulated.counted = expr.call.task
        tally.rows += 0 if self._looks else len(rows)
        table = pa.table(arguments, names=[str(i) for i in range(len(arguments))])
        if self.keep_arguments and not self._looks:
            tally.arguments.append(table)
        if expr.call.ingredient.kind.has_body and not expr.call.ingredient.kind.version:
            self.simulated.counted = None  # it asks questions of its own
            answered = super().column(expr, rows)
            if tally.values:
                self.simulated.guesses.add(expr.call.task)
                self.simulated.assumed.add(expr.call.task)
            return answered
        if expr.call.ingredient.kind.has_body:
            # The questions of a user's function are unknown: assume one per row of values.
            tally.values += len(occurrences(table)) if len(rows) else 0
            self.simulated.blind.add(expr.call.task)
            self.simulated.guesses.add(expr.call.task)
            self.simulated.assumed.add(expr.call.task)
            value: Column = pa.nulls(len(rows), expr.call.type)
            rows.known[expr] = value
            return value
        return super().column(expr, rows)

    def _placeholders(self, expr: Ask, rows: Rows) -> Column:
        """The remembered vectors; for other texts placeholders, equal for equal texts."""
        task, columns = expr.call.task, [self.argument(a, rows, expr.call) for a in expr.args]
        try:
            known = evaluate(expr.call, columns, self.simulated)
        except UnknownVectorError:
            pass
        else:
            rows.known[expr] = known
            return known
        self.simulated.blind.add(task)
        self.simulated.guesses.add(task)
        self.simulated.assumed.add(task)
        texts = zip(*(column.to_pylist() for column in columns), strict=True)
        numbers = [digest(row) / 2**32 for row in texts]
        listed = pa.types.is_list(expr.call.type)
        values: Column = pa.array([[n] for n in numbers] if listed else numbers, expr.call.type)
        rows.known[expr] = values
        return values

    def from_stored(self, expr: Expr, rows: Rows) -> Column:
        self._looks = True
        try:
            return super().from_stored(expr, rows)
        finally:
            self._looks = False

    def is_known(self, expr: Expr, rows: Rows) -> bool:
        return False  # a look-up would count as a question

    def _other(self, expr: Node, rows: Rows) -> Column:
        """A predicate over unknown answers is true at ``ASSUMED_PASS_RATE``."""
        try:
            value = super()._other(expr, rows)
        except Exception:  # a function may reject a placeholder with any exception
            typed = super()._other(expr, Rows(rows.table.schema.empty_table()))
            value = pa.nulls(len(rows), typed.type)
        return self._deal(expr, value, rows)

    def _connective(self, expr: Node, rows: Rows) -> Column:
        """As in ``RowWise``; but that no row passes on which an expression fails: it ends the
        query."""
        value, first = super()._connective(expr, rows), expr.children[0]
        tests = isinstance(first, Node) and first.name == COMPUTES
        return self.column(first, rows) if tests else value

    def _in_rows(self, expr: Node, rows: Rows) -> Column:
        return self._deal(expr, super()._in_rows(expr, rows), rows)

    def _deal(self, expr: Node, value: Column, rows: Rows) -> Column:
        """The value of a function, or an assumed one where it reads unknown answers."""
        unknown = [a for a in asks(expr) if a.call.task in self.simulated.blind and a in rows.known]
        if not unknown or not pa.types.is_boolean(value.type) or expr.name in _NULL_TESTS:
            return value
        share = self._shares.setdefault(expr, Share(ASSUMED_PASS_RATE))
        keys = zip(*(rows.known[a].to_pylist() for a in unknown), strict=True)
        return pa.array(share.deal(map(tuple, map(_hashable, keys))), pa.bool_())


_NULL_TESTS = ("is_null", "is_not_null")


def _hashable(key: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(repr(v) if isinstance(v, list | dict) else v for v in key)


def occurrences(table: pa.Table) -> list[int]:
    """The number of occurrences of each distinct row of values. Rows of only NULLs and lists are
    left out: each context counts as distinct."""
    if any(pa.types.is_list(f.type) or pa.types.is_large_list(f.type) for f in table.schema):
        return [1] * len(table)
    grouped = table.group_by(table.column_names).aggregate([([], "count_all")])
    keys = zip(*(grouped.column(n).to_pylist() for n in table.column_names), strict=True)
    counts = grouped.column("count_all").to_pylist()
    return [n for key, n in zip(keys, counts, strict=True) if any(v is not None for v in key)]


@dataclass(slots=True)
class StageSeen:
    """The observations of one stage in a dry run."""

    tallies: dict[Ask, Tally] = field(default_factory=dict)
    partial: str = ""
    """The description of the rows read, if not all relevant ones."""
    stops: bool = False
    """Whether a limit may end reading before the last row."""
    ending: frozenset[Ask] = frozenset()
    """The calls whose answers let the limit of another stage end this one early."""
    keeps_arguments: bool = False
    """Whether arguments of calls are kept, to extrapolate the values of all rows."""
    learns: bool = True
    """Whether predicates may change order; not if all rows are in the first chunk."""
    bounds: StageBounds | None = None
    """The values asked whatever the answers are; None before the stage runs."""
    is_sure: bool = False
    """Whether it reads these rows, up to its own limit, whatever the answers are."""
    scale: float = 1.0
    """Rows of the real source per row here."""
    scale_out: float = 1.0
    """Rows of the real output per row here."""

    def begin(self) -> None:
        """Start the stage, perhaps again: it does not repeat its earlier questions."""
        self.partial = ""
        for tally in self.tallies.values():
            tally.rows = 0
            tally.arguments.clear()


class DryRun(Execution):
    """One dry run. ``seen`` has the expected questions of each stage's calls, by stage number.

    It reads data and computes everything that needs no model, and keeps at most the sample of
    ``any_rows`` of every source. A limit ends it as early as a real run with these answers.
    """

    def __init__(
        self,
        context: SessionContext,
        plan: StagedPlan,
        rowwise: DryRows,
        options: Options,
        *,
        rules_off: Sequence[str],
        fed: StoredParts,
    ) -> None:
        dispatcher, workbench = rowwise.dispatcher, rowwise.workbench
        super().__init__(
            context, plan, dispatcher, workbench, options, rules_off=rules_off, fed=fed
        )
        self._dry = self._rowwise = rowwise
        rowwise.stored = self._rows_of
        self.seen: dict[int, StageSeen] = {}

    def stages_below(self, plan: Plan) -> list[int]:
        """The stages whose rows ``plan`` reads."""
        stored = [p.stage for p in subplans(plan) if isinstance(p, StoredRows)]
        return [*stored, *self._fed.stages_below(plan)]

    def carry_out(self) -> None:
        """Run every stage whose calls are to be counted. Raises what DataFusion raises."""
        for _ in self.tables(eager=True):
            pass

    def _run(
        self,
        stage: Stage,
        *,
        eager: bool,
        most: Callable[[], int] | None = None,
        found: list[pa.RecordBatch] | None = None,
    ) -> Generator[pa.Table, None, None]:
        block = stage.block
        seen = self.seen.setdefault(stage.number, StageSeen())
        seen.begin()
        if stage is self._plan.last and not any(map(asks, (*block.where, *block.select))):
            return
        source, cut = self._with_small_groups(block.source)
        sample = self._sample(source, limited=block.has_limit or most is not None)
        seen.scale = seen.scale_out = sample.scale * self._inherited_scale(block.source)
        above = self._limited.get(stage.number) if most is not None else None
        bounds = block if above is None else above
        wanted = bounds.offset + (bounds.count or 0)
        few = sample.complete and sample.rows <= wanted
        ends = block.once or bool(block.takes) or block.until is not None
        seen.stops = ends or (block.count is not None and not few)
        if above is not None and (above.multiplied or not few):
            seen.ending = self._asks_in(above.stages)
        if cut or not sample.complete:
            seen.partial = f"groups of the first {MOST_ROWS:,} rows" if cut else str(sample)
        elif any(is_volatile(e) for p in subplans(block) for e in expressions(p)):
            seen.partial = "one draw of random values"
        seen.keeps_arguments = seen.scale > 1.0
        if seen.bounds is None:
            seen.bounds = self._bounds(stage, sample)
        chunks = Chunks(sample.table.to_batches(), sample.table.schema)
        counts = self.counts[stage.number]
        ended = False
        try:
            yield from self._pipe(stage, chunks, eager=above is None, most=most)
            ended = True
        finally:
            seen.learns = self._adaptive and (counts.chunks > 1 or seen.stops)
            if above is not None and not ended:  # the limit above has its rows
                seen.scale = seen.scale_out = 1.0
                seen.partial = seen.partial if cut else ""
            elif block.count is not None:
                # A real run, too, reads until there are enough rows.
                seen.scale = min(seen.scale, max(1.0, wanted / max(1, counts.passed)))
                seen.scale_out = min(
                    seen.scale_out, max(1.0, block.count / max(1, counts.rows_out))
                )
                if counts.passed >= wanted and not sample.complete and not cut:
                    seen.partial = ""

    def _bounds(self, stage: Stage, sample: Sample) -> StageBounds:
        """How many values a stage asks, whatever the answers are."""
        block, seen = stage.block, self.seen[stage.number]
        plan = self._without_answers(block.source)
        if plan is not block.source:
            return self._bounds_above(block, plan)
        if self._fed.stages_below(plan) or seen.partial.startswith(("one", "groups")):
            return NO_BOUNDS
        if not sample.complete:
            rows = sample.rows if sample.counted else _known_count(self._frame(plan))
            most = {} if rows is None else most_of_rows(block, rows, self._dry)
            return replace(NO_BOUNDS, most=most)
        seen.is_sure = stage.number not in {*self._limited, *self._plan.operators}
        return ValueBounds(block, Rows(sample.table), self._dry).of_rows(runs=seen.is_sure)

    def _bounds_above(self, block: Block, plan: Plan) -> StageBounds:
        """The bounds of a block whose source, ``plan``, asks."""
        found = superset(plan)
        if found is None or any(isinstance(p, Block | StoredRows) for p in subplans(found.plan)):
            return NO_BOUNDS
        sample = self._any(found.plan)
        most: dict[Ask, int] = {}
        if found.counted and sample.counted:
            most = most_of_rows(block, sample.rows, self._dry)
        if sample.complete:
            rows, readable = Rows(sample.table), found.readable
            bounds = ValueBounds(block, rows, self._dry, readable)
            most |= bounds.most(np.arange(len(rows)))
        return replace(NO_BOUNDS, most=most)

    def _operator(self, stage: Stage) -> Callable[..., pa.Table] | None:
        seen = self.seen[stage.number]
        if stage.block.until is None or not seen.is_sure:
            return super()._operator(stage)

        def look(states: GroupStates) -> None:
            own = Rows(states.rows.table)
            seen.bounds = ValueBounds(stage.block, own, self._dry).of_groups(states)

        return partial(rows_of_decided_groups, look=look)

    def _without_answers(self, plan: Plan) -> Plan:
        """``plan`` with the blocks whose rows it reads, but for their limits."""
        blocks = {stage.number: stage.block for stage in self._plan.stages}

        def change(part: Plan) -> Plan:
            if not isinstance(part, StoredRows):
                return part
            block = blocks[part.stage]
            return Block(self._without_answers(block.source), block.where, block.select)

        return transform(plan, change)

    def _asking(self, stage: Stage) -> AbstractContextManager[None]:
        seen = self.seen[stage.number]
        self._dry.tallies, self._dry.keep_arguments = seen.tallies, seen.keeps_arguments
        return nullcontext()

    def _asks_in(self, stages: Sequence[int]) -> frozenset[Ask]:
        """The calls of stages."""
        blocks = [s.block for s in self._plan.stages if s.number in stages]
        return frozenset(a for b in blocks for e in expressions(b) for a in asks(e))

    def _sample(self, source: Plan, *, limited: bool) -> Sample:
        unsorted = _without_sorts(source)
        if unsorted is source:
            return self._first(source) if limited else self._any(source)
        if not limited:
            # The order of rows changes nothing but the order in which predicates are learned.
            sample = self._any(unsorted)
            return self._any(source) if sample.complete else sample
        sample = self._first(fetched(source, 0, SORTED_ROWS + 1), SORTED_ROWS)
        if not sample.complete and self._first(unsorted).complete:
            return self._first(source)
        return sample

    def _first(self, source: Plan, most_rows: int = MOST_ROWS) -> Sample:
        frame = self._frame(source)
        return first_rows(self._in_order(source, frame), frame.schema(), most_rows)

    def _any(self, source: Plan) -> Sample:
        frame = self._frame(source)
        sample = any_rows(self._start(source, self._partitions, frame), frame.schema())
        if sample.counted:
            return sample
        rows = _known_count(frame)
        return sample if rows is None else replace(sample, rows=rows, counted=True)

    def _with_small_groups(self, source: Plan) -> tuple[Plan, bool]:
        """``source`` where rows are collected into lists only if they are few, else the first ones
        of them, and whether there are more."""
        cut = False

        def smaller(plan: Plan) -> Plan:
            nonlocal cut
            if not (isinstance(plan, Rel) and plan.kind == "aggregate"):
                return plan
            if not any(m.name == "array_agg" for m in aggregation(plan).measures):
                return plan
            below = plan.inputs[0]
            frame = self._frame(project(fetched(below, 0, MOST_ROWS + 1), (boolean_literal(True),)))
            if sum(batch.num_rows for batch in stream(frame)) <= MOST_ROWS:
                return plan
            cut = True
            return plan.with_inputs(fetched(_without_sorts(below), 0, MOST_ROWS))

        return transform(source, smaller), cut

    def _inherited_scale(self, plan: Plan) -> float:
        """Real rows for each one that ``plan`` has here, because of samples below it."""
        if isinstance(plan, StoredRows):
            return self.seen[plan.stage].scale_out
        if isinstance(plan, Rel) and plan.kind == "read":
            below = self._fed.stages_below(plan)
            return max((self.seen[number].scale_out for number in below), default=1.0)
        if isinstance(plan, Rel) and plan.kind in ("aggregate", "fetch"):
            return 1.0  # groups do not grow with rows, not in general; nor does a limit
        return max((self._inherited_scale(below) for below in plan.inputs), default=1.0)


def _known_count(frame: DataFrame) -> int | None:
    """The rows of ``frame``, if DataFusion knows them without reading any."""
    counting = frame.aggregate([], [f.count(lit(1))])
    if "PlaceholderRowExec" not in counting.execution_plan().display_indent():
        return None
    return int(counting.collect()[0].column(0)[0].as_py())


def _without_sorts(plan: Plan) -> Plan:
    """``plan`` without sorts that only put its rows in order."""
    if isinstance(plan, Rel) and plan.kind == "sort":
        return _without_sorts(plan.inputs[0])
    if isinstance(plan, Rel) and plan.kind in ("project", "filter"):
        below = _without_sorts(plan.inputs[0])
        return plan if below is plan.inputs[0] else plan.with_inputs(below)
    return plan
