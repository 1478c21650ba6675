"""One run of a query as logs and OpenTelemetry see it: query, stages, batches."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from types import TracebackType

from opentelemetry import context as contexts
from opentelemetry import trace as spans
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span

from blendfusion.models import fields as f
from blendfusion.models import telemetry
from blendfusion.models.telemetry import Fields
from blendfusion.types import Task, Usage
from blendfusion.udfs.asker import StageCounts


class Watch:
    """Tells logs and OpenTelemetry what a run does; its trace tells it.

    As a context manager it is the run of one query: a span below the one that was current, ended
    however the run ends. No span of a query or a stage is ever the current one of the caller's code
    (a generator that waits between two chunks would leave it behind); a batch is, while the model
    answers. Outside of a ``with`` block it tells of batches only.

    ``model``: the name of the model, asked for after it has answered. ``questions``: their words may
    be told. ``about``: what is known of the query before it runs.
    """

    def __init__(
        self,
        *,
        model: Callable[[], str],
        questions: bool = False,
        about: Fields | None = None,
    ) -> None:
        self.id = secrets.token_hex(6)
        self._model = model
        self._questions = questions
        self._about: Fields = {f.QUERY_ID: self.id, **(about or {})}
        self._tasks: dict[Task, Fields] = {}
        self._spent = Usage()
        self._lock = threading.Lock()
        self._below: Context | None = None
        """What spans of batches stand in; None: in the caller's current one."""
        self._stage: Fields = {}
        self._asking = threading.local()
        """The span of the batch that a thread asks."""
        self._query: Span = INVALID_SPAN
        self._started = 0.0

    def __enter__(self) -> Watch:
        self._started = perf_counter()
        base = contexts.get_current()
        self._query = telemetry.start_span("blendfusion.query", self._about, base)
        self._below = spans.set_span_in_context(self._query, base)
        telemetry.query_started(self._about)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        seconds = perf_counter() - self._started
        fields: Fields = {f.QUERY_ID: self.id, f.SECONDS: seconds, **_outcome(error)}
        spent = telemetry.fields_of(self._spent)
        telemetry.end_span(self._query, _problem(error), fields | spent)
        telemetry.query_ended(self._spent, fields)
        self._below = None

    @contextmanager
    def stage(self, number: int, counts: StageCounts) -> Iterator[None]:
        """Meanwhile stage ``number`` (from 0) runs; ``counts`` hold at the end what it saw."""
        outer, above = self._below, self._stage
        self._stage = {f.STAGE: number + 1}
        span = telemetry.start_span(
            "blendfusion.stage", {f.QUERY_ID: self.id, **self._stage}, outer
        )
        self._below = spans.set_span_in_context(span, outer)
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            fields: Fields = {
                f.QUERY_ID: self.id,
                **self._stage,
                f.ROWS_IN: counts.rows_in,
                f.ROWS_OUT: counts.rows_out,
                f.CHUNKS: counts.chunks,
                f.SECONDS: counts.seconds,
                **_outcome(error),
            }
            telemetry.end_span(span, _problem(error), fields)
            telemetry.stage_ended(fields)
            self._below, self._stage = outer, above

    @contextmanager
    def asking(self, task: Task, n: int) -> Iterator[None]:
        """Meanwhile ``n`` requests are put to the model, as one batch."""
        fields = self._fields(task) | {f.SIZE: n}
        span = telemetry.start_span("blendfusion.batch", fields, self._below)
        self._asking.span = span
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

    def batch(self, task: Task, n: int, spent: Usage) -> None:
        """``n`` requests were answered: by the model if this is inside ``asking``, else by the cache."""
        with self._lock:
            self._spent += spent
        fields = self._fields(task) | {f.SIZE: n}
        span: Span | None = getattr(self._asking, "span", None)
        if span is not None:
            fields[f.REQUEST_MODEL] = self._model()
            if span.is_recording():
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


def _problem(error: BaseException | None) -> BaseException | None:
    """A stream that its reader closes has not failed."""
    return None if isinstance(error, GeneratorExit) else error


def _outcome(error: BaseException | None) -> Fields:
    if error is None:
        return {f.OUTCOME: "done"}
    if isinstance(error, GeneratorExit):
        return {f.OUTCOME: "closed"}
    return {f.OUTCOME: "failed", f.ERROR: type(error).__name__}
