"""Reports one run of a query to logs and OpenTelemetry: query, stages, batches."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from opentelemetry import context as contexts
from opentelemetry import trace as spans
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span

from blendfusion.models.protocol import event_fields as f
from blendfusion.models.protocol import events as telemetry
from blendfusion.models.protocol.events import Fields
from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Task, Usage
from blendfusion.udfs.ask.job import Job
from blendfusion.udfs.ask.observer import NullObserver, Part, StageCounts


class Watch:
    """Reports the events of a run to logs and OpenTelemetry; the run's trace calls it.

    The span of the query is a child of the current one at ``begin``. The span of a query or a stage
    is never the current one of the caller's code (a generator that waits between two chunks would
    leak it); a batch is current while the model answers. Without ``begin``, only batches are
    reported.

    ``questions``: whether their texts may be reported. ``about``: the known facts of the query
    before it runs.
    """

    def __init__(self, *, questions: bool = False, about: Fields | None = None) -> None:
        self.id = secrets.token_hex(6)
        self._questions = questions
        self._about: Fields = {f.QUERY_ID: self.id, **(about or {})}
        self._tasks: dict[Task, Fields] = {}
        self._base: Context | None = None
        """The parent of stage spans."""
        self._stages: dict[int, Context] = {}
        """The parents of batch spans, by stage."""
        self._below: Context | None = None
        """The current parent of batch spans; None: the caller's current span."""
        self._stage: Fields = {}
        self._asking = threading.local()
        """The span of the current batch of a thread."""
        self._query: Span = INVALID_SPAN

    def begin(self) -> None:
        """Report the start of the query. ``end`` must follow."""
        base = contexts.get_current()
        self._query = telemetry.start_span("blendfusion.query", self._about, base)
        self._base = self._below = spans.set_span_in_context(self._query, base)
        telemetry.query_started(self._about)

    def end(self, spent: Usage, seconds: float, error: BaseException | None, about: Fields) -> None:
        """Report the end of the query, by ``error`` if it failed. ``about``: further facts of its
        outcome."""
        fields: Fields = {f.QUERY_ID: self.id, f.SECONDS: seconds, **_outcome(error), **about}
        telemetry.end_span(self._query, _problem(error), fields | telemetry.fields_of(spent))
        telemetry.query_ended(spent, fields)
        self._base = self._below = None

    @contextmanager
    def stage(self, number: int, counts: StageCounts) -> Iterator[None]:
        """Report stage ``number`` (from 0), perhaps interleaved with others; ``counts`` are
        complete at its end."""
        about = {f.STAGE: number + 1}
        span = telemetry.start_span("blendfusion.stage", {f.QUERY_ID: self.id, **about}, self._base)
        self._stages[number] = spans.set_span_in_context(span, self._base)
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            fields: Fields = {
                f.QUERY_ID: self.id,
                **about,
                f.ROWS_IN: counts.rows_in,
                f.ROWS_OUT: counts.rows_out,
                f.CHUNKS: counts.chunks,
                f.SECONDS: counts.seconds,
                **_outcome(error),
            }
            telemetry.end_span(span, _problem(error), fields)
            telemetry.stage_ended(fields)

    @contextmanager
    def within(self, number: int) -> Iterator[None]:
        """Attribute questions within this context to this running stage."""
        outer = self._below, self._stage
        self._below, self._stage = self._stages[number], {f.STAGE: number + 1}
        try:
            yield
        finally:
            self._below, self._stage = outer

    @contextmanager
    def asking(self, job: Job, n: int) -> Iterator[None]:
        """Report ``n`` requests that go to a model as one batch within this context."""
        span = telemetry.start_span("blendfusion.batch", None, self._below)
        self._asking.span = span
        if not span.get_span_context().is_valid:  # without an SDK
            try:
                yield
            finally:
                self._asking.span = None
            return
        span.set_attributes(self._fields(job.task) | {f.SIZE: n})
        problem: BaseException | None = None
        try:
            with spans.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        except BaseException as raised:
            problem = raised
            raise
        finally:
            self._asking.span = None
            telemetry.end_span(span, problem, {})

    def batch(self, job: Job, n: int, spent: Usage) -> None:
        """Report ``n`` answered requests: by the model inside ``asking``, else by the cache."""
        span: Span | None = getattr(self._asking, "span", None)
        model = "" if span is None else job.model.info.name
        telemetry.count_batch(spent, job.task.ingredient, model, by_model=span is not None)
        recording = span is not None and span.is_recording()
        if not (recording or telemetry.logs("batch", logging.DEBUG)):
            return
        fields = self._fields(job.task) | {f.SIZE: n}
        if span is not None:
            fields |= {f.REQUEST_MODEL: model}
            span.set_attributes(fields | telemetry.fields_of(spent))
        telemetry.batch_answered(spent, fields, by_model=span is not None)

    def _fields(self, task: Task) -> Fields:
        known = self._tasks.get(task)
        if known is None:
            known = {f.INGREDIENT: task.ingredient, f.TASK: telemetry.digest_of(task)}
            if self._questions:
                known[f.QUESTION] = task.question
            self._tasks[task] = known
        return {f.QUERY_ID: self.id, **self._stage, **known}


class TelemetryObserver(NullObserver):
    """Reports batches to logs and OpenTelemetry, and keeps nothing: for functions outside a
    session."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def asking(self, job: Job, n: int) -> AbstractContextManager[None]:
        return self._watch.asking(job, n)

    def batch(
        self, job: Job, values: Sequence[Values], answers: Sequence[Answer], seconds: float
    ) -> None:
        spent = replace(Usage.total(a.usage for a in answers), seconds=seconds)
        self._watch.batch(job, len(values), spent)

    def partly(self, job: Job, part: Part, seconds: float) -> None:
        spent = replace(Usage.total(a.usage for a in part.answers), seconds=seconds)
        self._watch.batch(job, part.number, spent)


def _problem(error: BaseException | None) -> BaseException | None:
    """A stream that its reader closes has not failed."""
    return None if isinstance(error, GeneratorExit) else error


def _outcome(error: BaseException | None) -> Fields:
    if error is None:
        return {f.OUTCOME: "done"}
    if isinstance(error, GeneratorExit):
        return {f.OUTCOME: "closed"}
    return {f.OUTCOME: "failed", f.ERROR: type(error).__name__}
