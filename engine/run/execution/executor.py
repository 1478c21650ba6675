"""Runs a staged plan: each stage's source in DataFusion, its row-wise work here, its output
stored."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.record_batch import RecordBatchStream

from blendfusion.datafusion.arrow_layouts import as_schema, plain_schema
from blendfusion.datafusion.foreign_words import foreign
from blendfusion.datafusion.interruptible import Pump
from blendfusion.datafusion.one_sort import with_one_sort
from blendfusion.datafusion.part_views import REPEATED_NAMES, PartViews
from blendfusion.datafusion.partitions import in_turn
from blendfusion.datafusion.scan_run import ScanRun
from blendfusion.datafusion.substrait.case_key_bug import REFUSAL, with_computed_cases
from blendfusion.datafusion.substrait.constant_bug import with_hidden_conditions
from blendfusion.datafusion.substrait.constant_columns import with_hidden_constants
from blendfusion.datafusion.substrait_io import batches_of, relation_of
from blendfusion.datafusion.unnamed_tables import HIDDEN_CATALOG, STAGE_SCHEMA
from blendfusion.errors import BlendFusionError, PlanError
from blendfusion.language.opaque.nested_stages import NOTHING, StoredParts
from blendfusion.planner.ir.builders import boolean_literal, project
from blendfusion.planner.ir.nodes import Field, Plan
from blendfusion.planner.ir.traversal import branches
from blendfusion.planner.run_switches import FEW_VALUES_FIRST, LIMITED_STAGES, PREDICATE_ORDER
from blendfusion.planner.stages.interleave import LimitedStages, limited_stages
from blendfusion.planner.stages.split import Stage, StagedPlan
from blendfusion.run.execution.expressions import RowWise
from blendfusion.run.execution.interleaved_stages import IncrementalStage, run_interleaved
from blendfusion.run.execution.pair_order import few_values_first
from blendfusion.run.execution.pipeline import Chunks, Counts, run
from blendfusion.run.execution.spill import Spill

if TYPE_CHECKING:
    from blendfusion.options import Options
    from blendfusion.run.execution.scratch_context import Workbench
    from blendfusion.udfs.ask.dispatcher import Dispatcher

T = TypeVar("T")

_serials = count(1)
ADDED_COLUMN = "added by the divider"

Divide: TypeAlias = "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]"
"""The batches of a source, or some of their rows, with a further column of int64."""
Elsewhere: TypeAlias = (
    "Callable[[Stage, Dispatcher, Counts, Callable[[Divide], Iterator[pa.Table]]], "
    "Generator[pa.Table, None, None] | None]"
)
"""Runs a stage in another way than the executor, as a cluster does; None for one that it cannot
run. The last argument is ``Execution.run_divided`` of the stage."""


class Execution:
    """One run of a staged plan in a session. ``counts`` has the counts of each stage."""

    def __init__(
        self,
        context: SessionContext,
        plan: StagedPlan,
        dispatcher: Dispatcher,
        workbench: Callable[[], Workbench],
        options: Options,
        *,
        rules_off: Sequence[str] = (),
        fed: StoredParts = NOTHING,
        elsewhere: Elsewhere | None = None,
        scans: ScanRun | None = None,
    ) -> None:
        self._context = context
        self._scans = scans or ScanRun()
        self._elsewhere = elsewhere
        self._plan = plan
        self._rowwise = RowWise(dispatcher, workbench, self._rows_of)
        self._options = options
        self._spill = Spill(options)
        self._adaptive = PREDICATE_ORDER not in rules_off
        self._few_values = FEW_VALUES_FIRST not in rules_off
        self._serial = next(_serials)
        self._relations: dict[int, bytes] = {}
        self._fed = fed
        self._limited = {} if LIMITED_STAGES in rules_off else limited_stages(plan)
        """Limits by the stages that they may end."""
        prefix = f"{HIDDEN_CATALOG}.{STAGE_SCHEMA}.run{self._serial}"
        self._views = PartViews(context, prefix, self._relations)
        self._parts: dict[str, str] = {}
        """The tables of stored parts, by the names of their leaves."""
        self.counts: dict[int, Counts] = {stage.number: Counts() for stage in plan.stages}

    def tables(self, *, eager: bool) -> Generator[pa.Table, None, None]:
        """The result, chunk by chunk, columns by position; at least one chunk, which may be empty.

        ``eager``: the caller reads all of it. Stages before the last run first, to their end or as
        far as a limit needs. Closing the generator ends the run and drops the stored rows.
        """
        limits = {limited.above: limited for limited in self._limited.values()}
        try:
            for stage in self._plan.stages:
                if stage.number in self._limited:
                    continue  # it runs with the limit above it
                limited = limits.get(stage.number)
                found = None if limited is None else self._in_turn(limited, stage)
                if stage is self._plan.last:
                    yield from self._run(stage, eager=eager, found=found)
                else:
                    self._store(stage, self._run(stage, eager=True, found=found))
        finally:
            for number in self._relations:
                if number >= 0:
                    self._context.deregister_table(self._name(number))
            self._views.close()
            self._relations.clear()
            for name in self._parts.values():
                self._context.deregister_table(name)
            self._parts = {}
            self._scans.close()

    def _in_turn(self, limited: LimitedStages, above: Stage) -> list[pa.RecordBatch] | None:
        """Run the stages of a limit as far as it needs. Returns the rows of the source that
        contains it, None for a limit that belongs to the stage above, or if that is to read all."""
        found: list[pa.RecordBatch] = []
        source = limited.first or above.block.source

        def look() -> int:
            if limited.own:
                return self._count_passed(above)
            found[:] = self._start(source, self._stream)
            return sum(batch.num_rows for batch in found)

        turns = [
            IncrementalStage(
                partial(self._run, stage, eager=False),
                lambda table: self._spill.keep([table]),
                partial(self._register, stage),
                self.counts[stage.number],
                late=stage.number in limited.late,
                restarts=stage.number in limited.restarting,
            )
            for stage in self._plan.stages
            if stage.number in limited.stages
        ]
        try:
            run_interleaved(turns, look, limited)
        finally:
            for turn in turns:
                turn.close()
        too_few = limited.first and sum(batch.num_rows for batch in found) < limited.count
        return None if limited.own or too_few else found

    def _count_passed(self, stage: Stage) -> int:
        """The number of rows that a stage with a limit returns so far. Its answers are cached for
        the run of the stage."""
        alone = replace(stage, block=replace(stage.block, select=()))
        count = sum(len(table) for table in self._run(alone, eager=False))
        self.counts[stage.number].restart()
        return count

    def _run(
        self,
        stage: Stage,
        *,
        eager: bool,
        most: Callable[[], int] | None = None,
        found: list[pa.RecordBatch] | None = None,
    ) -> Generator[pa.Table, None, None]:
        """The output of a stage, a chunk at a time. ``most``: the chunk size, deterministic for a
        limit above. ``found``: the rows of its source, if known."""
        own = self._plan.operators.get(stage.number)
        if self._elsewhere is not None and found is None and most is None and own is None:
            counts = self.counts[stage.number]
            here = partial(self.run_divided, stage)
            tables = self._elsewhere(stage, self._rowwise.dispatcher, counts, here)
            if tables is not None:
                with self._rowwise.dispatcher.observer.stage(stage.number, counts):
                    yield from self._count_questions(stage, tables)
                return
        frame = self.source(stage)
        if found is not None:
            batches: Iterator[pa.RecordBatch] = iter(found)
        elif stage.block.has_limit or stage.block.until or own or most is not None:
            batches = self._in_order(stage.block.source, frame)
        else:
            batches = self._start(stage.block.source, self._stream, frame)
        chunks = Chunks(batches, frame.schema())
        with self._rowwise.dispatcher.observer.stage(stage.number, self.counts[stage.number]):
            yield from self._pipe(stage, chunks, eager=eager, most=most)

    def run_divided(self, stage: Stage, divide: Divide) -> Iterator[pa.Table]:
        """The output of a row-wise stage for the rows that ``divide`` gives, in their order; the
        last column is the one that it added. Each partition comes whole: where another run divides
        the same rows into other partitions and batches, most neighbours stay."""
        frame = self.source(stage)
        schema = plain_schema(frame.schema())
        select = stage.block.select or (boolean_literal(True),)  # as rows without columns have one
        block = replace(stage.block, select=(*select, Field(len(schema))))
        batches = divide(self._in_order(stage.block.source, frame, whole=True))
        chunks = Chunks(batches, schema.append(pa.field(ADDED_COLUMN, pa.int64())))
        return self._pipe(replace(stage, block=block), chunks, eager=True, most=None)

    def _pipe(
        self, stage: Stage, chunks: Chunks, *, eager: bool, most: Callable[[], int] | None
    ) -> Generator[pa.Table, None, None]:
        """The output of a stage for ``chunks`` of its source."""
        if self._few_values:
            chunks = few_values_first(stage.block, chunks, self._rowwise)
        tables = run(
            stage.block,
            chunks,
            self._rowwise,
            self._options,
            self.counts[stage.number],
            eager=eager,
            adaptive=self._adaptive,
            most=most,
            operator=self._operator(stage),
        )
        yield from self._count_questions(stage, tables)

    def _operator(self, stage: Stage) -> Callable[..., pa.Table] | None:
        """The function that runs a stage in place of the usual one."""
        return self._plan.operators.get(stage.number)

    def _count_questions(
        self, stage: Stage, tables: Generator[pa.Table, None, None]
    ) -> Generator[pa.Table, None, None]:
        """These tables; the questions behind them count for the stage."""
        with closing(tables):
            while True:
                with self._asking(stage):
                    table = next(tables, None)
                if table is None:
                    return
                yield table

    def _asking(self, stage: Stage) -> AbstractContextManager[None]:
        """Attribute questions within this context to ``stage``."""
        return self._rowwise.dispatcher.observer.within(stage.number)

    def _in_order(
        self, source: Plan, frame: DataFrame, *, whole: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a source, whose frame is ``frame``, branch by branch of a union. A limit that
        ends in one branch leaves the next unopened, and the order is the same each time."""
        begin = partial(self._partitions, whole=whole)
        for number, branch in enumerate(branches(source)):
            try:
                batches = self._start(branch, begin, frame if branch is source else None)
            except PlanError as problem:
                if number == 0:
                    raise
                # Some rows were returned already, so the query cannot restart on the plain path.
                raise BlendFusionError(problem.message) from problem
            yield from batches

    def _start(
        self,
        source: Plan,
        begin: Callable[[DataFrame], Iterator[pa.RecordBatch]],
        frame: DataFrame | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The batches of a source, whose frame is ``frame`` if there is one yet; where DataFusion
        refuses it otherwise, with each CASE among its keys as a column, or with a name of its own
        for each column of a relation."""
        try:
            return begin(self._frame(source) if frame is None else frame)
        except PlanError as problem:
            if REFUSAL in problem.message:
                return begin(self._frame(with_computed_cases(source)))
            if REPEATED_NAMES not in problem.message:
                raise
            return begin(self._frame(source, named=True))

    def _partitions(self, frame: DataFrame, *, whole: bool = False) -> Iterator[pa.RecordBatch]:
        """The batches of a frame, partition by partition, in the same order each time, so that a
        limit meets the same rows. Raises PlanError like ``stream``."""
        streams = _begin(partial(self._scans.begin, frame, frame.execute_stream_partitioned))
        if len(streams) == 1:
            return _fetch(*streams)
        return in_turn(streams, self._spill.keep, whole=whole)

    def _stream(self, frame: DataFrame) -> Iterator[pa.RecordBatch]:
        """The batches of a frame as they are computed. Raises PlanError like ``stream``."""
        return _fetch(_begin(partial(self._scans.begin, frame, frame.execute_stream)))

    def source(self, stage: Stage) -> DataFrame:
        """The DataFusion plan of a stage's source. Raises PlanError if DataFusion refuses it."""
        return self._frame(stage.block.source)

    def _frame(self, source: Plan, *, named: bool = False) -> DataFrame:
        if source.width == 0:  # a batch without columns would lose its number of rows
            source = project(source, (boolean_literal(True),))
        source = with_hidden_constants(with_hidden_conditions(source))
        try:
            with self._fed.bind(self._parts):
                return with_one_sort(self._context, self._views.frame(source, named=named))
        except Exception as problem:
            reason = foreign(str(problem), self._options.redaction)
            raise PlanError(f"DataFusion does not read back its own plan: {reason}") from problem

    def _store(self, stage: Stage, tables: Iterator[pa.Table]) -> None:
        table = self._spill.keep(tables)
        self._register(stage, table)
        part = self._fed.stored.get(stage.number)
        if part is not None:
            name = f"{self._name(stage.number)}_part"
            rows = self._with_types(table, part.schema)
            self._context.register_record_batches(name, [batches_of(rows)])
            self._parts[part.leaf.name] = name

    def _register(self, stage: Stage, table: pa.Table) -> None:
        """Make ``table`` the output of the stage from now on."""
        name = self._name(stage.number)
        if stage.number in self._relations:
            self._context.deregister_table(name)
        # DataFusion 55 takes columns of one name on both sides of a join for each other.
        names = [f"{stage.number}_{i}" for i in range(table.num_columns)]
        self._context.register_record_batches(name, [batches_of(table.rename_columns(names))])
        self._relations[stage.number] = relation_of(self._context, name)

    def _with_types(self, table: pa.Table, schema: pa.Schema) -> pa.Table:
        """Stored rows with the types of ``schema``; they share memory, or are stored again."""
        if all(a.equals(b.type) for a, b in zip(table.schema.types, schema, strict=True)):
            return as_schema(table, schema)
        pieces = (pa.Table.from_batches([batch]) for batch in batches_of(table))
        return self._spill.keep(as_schema(piece, schema) for piece in pieces)

    def _rows_of(self, number: int) -> pa.Table:
        """The rows of a stage that has run."""
        return self._context.table(self._name(number)).to_arrow_table()

    def _name(self, number: int) -> str:
        return f"{HIDDEN_CATALOG}.{STAGE_SCHEMA}.run{self._serial}_{number}"


def stream(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The batches of a frame as they are computed. Raises PlanError, before the first of them, if
    DataFusion cannot plan it: some of its rules fail on plans that were read back."""
    return _fetch(_begin(frame.execute_stream))


def _begin(begin: Callable[[], T]) -> T:
    try:
        return Pump().begin(begin)
    except Exception as problem:
        raise PlanError(f"DataFusion cannot plan what it read back: {problem}") from problem


def _fetch(stream: RecordBatchStream) -> Iterator[pa.RecordBatch]:
    return Pump().batches(lambda: stream, asks=False)
