"""Runs a frame: by its stages, or plain."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import DataFrame

from blendfusion.datafusion.arrow_layouts import as_schema, concat
from blendfusion.datafusion.interruptible import Pump
from blendfusion.datafusion.kept_expressions import with_kept_expressions
from blendfusion.datafusion.one_sort import with_one_sort
from blendfusion.errors import BlendFusionError, PlanError
from blendfusion.language.doubts.plan_warnings import warn_of_plain, warn_of_refusal
from blendfusion.language.opaque.datafusion_bugs import without_bugs
from blendfusion.language.opaque.execution_path import careful_plan
from blendfusion.language.opaque.nested_stages import NOTHING
from blendfusion.language.opaque.provenance import parameter_texts, written_sql
from blendfusion.planner.driver import reason
from blendfusion.run.execution.executor import Execution
from blendfusion.run.observe.progress import progress
from blendfusion.run.reports.confirmation import confirm
from blendfusion.run.reports.trace import Trace
from blendfusion.udfs.register.expr import binding

if TYPE_CHECKING:
    from blendfusion.datafusion.scan_run import ScanRun
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.udfs.ask.dispatcher import Dispatcher


def tables_of(
    frame: BaseFrame, *, eager: bool, whole: bool = False
) -> Generator[pa.Table, None, None]:
    """The result as tables of the frame's schema; at least one. ``whole``: the caller holds all of
    them until the last one has come."""
    engine, latest, options = frame.engine, frame.latest, frame.engine.options
    if options.confirm_above:
        confirm(frame, options.confirm_above)
    reporter = engine.runs.reporter or progress(options.progress)
    latest.trace = trace = Trace(reporter, engine.runs.speeds, options.redaction)
    dispatcher = engine.runs.dispatcher(trace, frame.budget)
    trace.given = parameter_texts(frame) if options.show_values == "off" else set()
    dispatcher.ledger.expected, latest.expected = latest.expected, None
    prepared = frame.prepared
    warn_of_plain(prepared.reason, engine.plans.warnings)
    run = trace.begin(options, written_sql(frame), len(prepared.calls), prepared.shape)
    with reporter, run, engine.runs.media.running(), frame.running():
        try:
            yield from answer_frame(frame, dispatcher, eager=eager, whole=whole)
        finally:
            run.plan, run.counts = frame.prepared.shape, frame.last_counts
            trace.keep_rates()
            engine.runs.note_usage(trace)
    trace.warn(dispatcher.outages, dispatcher.compared.differences())


def answer_frame(
    frame: BaseFrame, dispatcher: Dispatcher, *, eager: bool, whole: bool = True
) -> Generator[pa.Table, None, None]:
    """The result as tables of the frame's schema, at least one, with the answers of
    ``dispatcher``."""
    if frame.source is not None and frame.statement is not None:
        source = (frame.renewed and frame.renewed()) or frame.source
        rows = concat(list(source.answer_tables(dispatcher, eager=True)))
        frame.latest.execution = source.latest.execution
        yield frame.statement(rows).to_arrow_table()
        return
    schema = frame.schema()
    engine = frame.engine
    engine.calls.settle(engine, frame.prepared.calls, dispatcher)
    dispatcher.check_kinds(frame.prepared.calls)
    refused: str | None = None
    try:
        yield from _careful_tables(frame, dispatcher, schema, eager=eager, whole=whole)
    except PlanError as problem:
        # DataFusion refused a stage; the answers so far are in the cache.
        refused = reason(problem)
        frame.prepared = replace(frame.prepared, staged=None, reason=refused)
    if frame.prepared.staged is None:
        try:
            yield from _plain_tables(frame, dispatcher, schema)
        except BlendFusionError:  # any other: DataFusion refuses the query in whatever form
            warn_of_refusal(refused, engine.plans.warnings)
            raise
        warn_of_refusal(refused, engine.plans.warnings)


def _careful_tables(
    frame: BaseFrame, dispatcher: Dispatcher, schema: pa.Schema, *, eager: bool, whole: bool
) -> Iterator[pa.Table]:
    """As ``_staged_tables``. Where an expression fails before the caller has any row, rows on which
    it does are asked first, since their answers may drop them."""
    tables = _staged_tables(frame, dispatcher, schema, eager=eager)
    first: list[pa.Table] = []
    try:
        while (whole or not any(map(len, first))) and (more := list(islice(tables, 1))):
            first += more
    except PlanError:
        raise
    except Exception as problem:
        careful = careful_plan(frame, problem)
        if careful is None:
            raise
        if careful.staged is None:
            raise PlanError(careful.reason or "") from problem
        frame.prepared, first = careful, []
        tables = _staged_tables(frame, dispatcher, schema, eager=eager)
    with closing(tables):
        yield from first
        yield from tables


def _staged_tables(
    frame: BaseFrame, dispatcher: Dispatcher, schema: pa.Schema, *, eager: bool
) -> Generator[pa.Table, None, None]:
    """The result by the staged plan; nothing without one. PlanError comes before any table."""
    engine = frame.engine
    frame.latest.execution = None
    if frame.prepared.staged is None:
        return
    frame.latest.execution = execution = Execution(
        engine.tables,
        engine.plans.as_run(frame.prepared.staged),
        dispatcher,
        engine.tables.workbench_source(),
        engine.options,
        rules_off=engine.plans.rules_off,
        fed=frame.prepared.fed or NOTHING,
        elsewhere=engine.runs.elsewhere(),
        scans=_scan_run(frame, dispatcher),
    )
    with closing(execution.tables(eager=eager)) as tables:
        for table in tables:
            yield as_schema(table, schema)


def _plain_tables(
    frame: BaseFrame, dispatcher: Dispatcher, schema: pa.Schema
) -> Iterator[pa.Table]:
    with frame.engine.runs.answering(dispatcher), binding(frame.prepared.calls, dispatcher):
        yield pa.Table.from_batches([], schema)  # Arrow has no empty array of some types
        for batch in _plain_batches(frame, dispatcher):
            yield as_schema(pa.Table.from_batches([batch]), schema)


def _scan_run(frame: BaseFrame, dispatcher: Dispatcher) -> ScanRun:
    run = frame.engine.runs.scan_run()
    run.on_left_out = dispatcher.observer.on_left_out
    if run.before is not None:
        run.before(DataFrame(frame.df))
    return run


def _own_frame(frame: BaseFrame) -> DataFrame:
    if frame.prepared.calls:
        tables = frame.engine.tables
        return with_one_sort(tables, with_kept_expressions(tables, DataFrame(frame.df)))
    return without_bugs(frame)


def _plain_batches(frame: BaseFrame, dispatcher: Dispatcher) -> Iterator[pa.RecordBatch]:
    try:
        pump = Pump()
        with dispatcher.served_by(pump.serve), closing(_scan_run(frame, dispatcher)) as run:
            plain = _own_frame(frame)
            begin = partial(run.begin, plain, plain.execute_stream)
            yield from pump.batches(begin, asks=True)
    except Exception:
        # DataFusion passes on only the text of a function's exception.
        if dispatcher.error is not None:
            raise dispatcher.error from None
        raise
