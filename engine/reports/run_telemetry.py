"""One run of a query as logs and OpenTelemetry see it: query, stages, batches."""

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
from blendfusion.udfs.ask.dispatcher import NullObserver, StageCounts
from blendfusion.udfs.ask.question import Asked


class Watch:
    """Tells logs and OpenTelemetry what a run does; its trace tells it.

    The span of the query stands below the one that is current at ``begin``. No span of a query or a
    stage is ever the current one of the caller's code (a generator that waits between two chunks would
    leave it behind); a batch is, while the model answers. Without ``begin``, batches alone are told.

    ``questions``: their words may be told. ``about``: what is known of the query before it runs.
    """

    def __init__(self, *, questions: bool = False, about: Fields | None = None) -> None:
        self.id = secrets.token_hex(6)
        self._questions = questions
        self._about: Fields = {f.QUERY_ID: self.id, **(about or {})}
        self._tasks: dict[Task, Fields] = {}
        self._base: Context | None = None
        """What spans of stages stand in."""
        self._stages: dict[int, Context] = {}
        """What spans of batches of each stage stand in."""
        self._below: Context | None = None
        """What spans of batches stand in now; None: in the caller's current one."""
        self._stage: Fields = {}
        self._asking = threading.local()
        """The span of the batch that a thread asks."""
        self._query: Span = INVALID_SPAN

    def begin(self) -> None:
        """The query begins. ``end`` must follow."""
        base = contexts.get_current()
        self._query = telemetry.start_span("blendfusion.query", self._about, base)
        self._base = self._below = spans.set_span_in_context(self._query, base)
        telemetry.query_started(self._about)

    def end(self, spent: Usage, seconds: float, error: BaseException | None, about: Fields) -> None:
        """The query has ended, by ``error`` if there is one. ``about``: what else became of it."""
        fields: Fields = {f.QUERY_ID: self.id, f.SECONDS: seconds, **_outcome(error), **about}
        telemetry.end_span(self._query, _problem(error), fields | telemetry.fields_of(spent))
        telemetry.query_ended(spent, fields)
        self._base = self._below = None

    @contextmanager
    def stage(self, number: int, counts: StageCounts) -> Iterator[None]:
        """Stage ``number`` (from 0) runs, perhaps with others in turn; ``counts`` hold at the end what it saw."""
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
        """Meanwhile it is this stage, which runs, that asks."""
        outer = self._below, self._stage
        self._below, self._stage = self._stages[number], {f.STAGE: number + 1}
        try:
            yield
        finally:
            self._below, self._stage = outer

    @contextmanager
    def asking(self, asked: Asked, n: int) -> Iterator[None]:
        """Meanwhile ``n`` requests are put to a model, as one batch."""
        span = telemetry.start_span("blendfusion.batch", None, self._below)
        self._asking.span = span
        if not span.get_span_context().is_valid:  # without an SDK
            try:
                yield
            finally:
                self._asking.span = None
            return
        span.set_attributes(self._fields(asked.task) | {f.SIZE: n})
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

    def batch(self, asked: Asked, n: int, spent: Usage) -> None:
        """``n`` requests were answered: by the model if this is inside ``asking``, else by the cache."""
        span: Span | None = getattr(self._asking, "span", None)
        model = "" if span is None else asked.model.info.name
        telemetry.count_batch(spent, asked.task.ingredient, model, asked=span is not None)
        recording = span is not None and span.is_recording()
        if not (recording or telemetry.logs("batch", logging.DEBUG)):
            return
        fields = self._fields(asked.task) | {f.SIZE: n}
        if span is not None:
            fields |= {f.REQUEST_MODEL: model}
            span.set_attributes(fields | telemetry.fields_of(spent))
        telemetry.batch_answered(spent, fields, asked=span is not None)

    def _fields(self, task: Task) -> Fields:
        known = self._tasks.get(task)
        if known is None:
            known = {f.INGREDIENT: task.ingredient, f.TASK: telemetry.digest_of(task)}
            if self._questions:
                known[f.QUESTION] = task.question
            self._tasks[task] = known
        return {f.QUERY_ID: self.id, **self._stage, **known}


class Told(NullObserver):
    """Tells logs and OpenTelemetry of batches, and keeps nothing: for functions outside a session."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def asking(self, asked: Asked, n: int) -> AbstractContextManager[None]:
        return self._watch.asking(asked, n)

    def batch(
        self, asked: Asked, values: Sequence[Values], answers: Sequence[Answer], seconds: float
    ) -> None:
        spent = replace(Usage.total(a.usage for a in answers), seconds=seconds)
        self._watch.batch(asked, len(values), spent)


def _problem(error: BaseException | None) -> BaseException | None:
    """A stream that its reader closes has not failed."""
    return None if isinstance(error, GeneratorExit) else error


def _outcome(error: BaseException | None) -> Fields:
    if error is None:
        return {f.OUTCOME: "done"}
    if isinstance(error, GeneratorExit):
        return {f.OUTCOME: "closed"}
    return {f.OUTCOME: "failed", f.ERROR: type(error).__name__}
