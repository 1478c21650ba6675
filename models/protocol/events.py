"""Reports events to logs and OpenTelemetry, under the names in ``event_fields``.

Nothing is set up here. Without a handler for a level, no record is created; without OpenTelemetry's
SDK, spans and metrics do nothing. Neither receives values, answers, prompts or keys. Only the class
of an exception is reported, as its text may contain any of them.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import AbstractContextManager
from time import perf_counter
from types import TracebackType
from typing import Literal, TypeAlias

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from blendfusion.models.protocol import event_fields as f
from blendfusion.types import Task, Usage

Field: TypeAlias = "str | bool | int | float"
Fields: TypeAlias = "dict[str, Field]"

logging.getLogger("blendfusion").addHandler(logging.NullHandler())

_TRACER = trace.get_tracer("blendfusion")
_METER = metrics.get_meter("blendfusion")
_QUERIES = _METER.create_counter("blendfusion.queries", "{query}")
_VALUES = _METER.create_counter("blendfusion.values", "{value}")
_CACHED = _METER.create_counter("blendfusion.cached", "{value}")
_FAILED = _METER.create_counter("blendfusion.failed", "{value}")
_TOKENS = _METER.create_counter("blendfusion.tokens", "{token}")
_RETRIES = _METER.create_counter("blendfusion.retries", "{request}")
_BATCH_SECONDS = _METER.create_histogram("blendfusion.batch.duration", "s")
_CALL_SECONDS = _METER.create_histogram("gen_ai.client.operation.duration", "s")


def logs(logger: str, level: int) -> bool:
    """Whether a handler takes records of ``blendfusion.{logger}``."""
    return logging.getLogger(f"blendfusion.{logger}").isEnabledFor(level)


def log(logger: str, level: int, message: str, fields: Fields) -> None:
    """Emit a record of ``blendfusion.{logger}``; ``fields`` are its attributes, and appear in its
    text."""
    to = logging.getLogger(f"blendfusion.{logger}")
    if to.isEnabledFor(level):
        items = [f"{k.removeprefix('blendfusion.')}={_short(v)}" for k, v in fields.items()]
        to.log(level, "%s %s", message, " ".join(items), extra=fields)


def _short(value: Field) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def fields_of(usage: Usage) -> Fields:
    """The fields of a usage, with the seconds inside the model."""
    return {
        f.VALUES: usage.values,
        f.CACHED: usage.cached,
        f.FAILED: usage.failed,
        f.CALLS: usage.calls,
        f.INPUT_TOKENS: usage.prompt_tokens,
        f.EVALUATED_TOKENS: usage.evaluated_tokens,
        f.OUTPUT_TOKENS: usage.completion_tokens,
        f.MODEL_SECONDS: usage.seconds,
    }


def digest_of(task: Task) -> str:
    """12 hexadecimal digits that identify a task without its text."""
    text = repr((task.question, task.constraint, task.columns, task.examples, task.form))
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


# --- spans ---------------------------------------------------------------------------------------


def start_span(
    name: str, fields: Fields | None, parent: Context | None, kind: SpanKind = SpanKind.INTERNAL
) -> Span:
    """A span that the caller ends, never the current one. ``parent`` None: the current span."""
    return _TRACER.start_span(name, context=parent, kind=kind, attributes=fields)


def end_span(span: Span, problem: BaseException | None, fields: Fields) -> None:
    """End a span, as failed if there is a problem."""
    if span.is_recording():
        span.set_attributes(fields)
        if problem is not None:
            span.set_attribute(f.ERROR, type(problem).__name__)
            span.set_status(Status(StatusCode.ERROR))
    span.end()


class ModelCall:
    """One call of a model. Its caller sets ``spent``, if known."""

    __slots__ = ("_began", "_current", "_fields", "_kind", "_name", "_span", "spent")

    def __init__(self, name: str, fields: Fields, kind: SpanKind) -> None:
        self.spent: Usage | None = None
        self._name, self._fields, self._kind = name, fields, kind

    def __enter__(self) -> ModelCall:
        self._span = start_span(self._name, self._fields, None, self._kind)
        self._current: AbstractContextManager[Span] | None = None
        if self._span.get_span_context().is_valid:  # else nobody traces
            self._current = trace.use_span(
                self._span, record_exception=False, set_status_on_exception=False
            )
            self._current.__enter__()
        self._began = perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        outcome: Fields = {} if problem is None else {f.ERROR: type(problem).__name__}
        _CALL_SECONDS.record(perf_counter() - self._began, self._fields | outcome)
        tokens: Fields = {}
        if self.spent is not None:
            tokens[f.INPUT_TOKENS] = self.spent.prompt_tokens
            tokens[f.OUTPUT_TOKENS] = self.spent.completion_tokens
        if self._current is not None:
            self._current.__exit__(kind, problem, traceback)
        end_span(self._span, problem, tokens)


def model_call(
    provider: str,
    model: str,
    operation: Literal["chat", "embeddings"] = "chat",
    *,
    server: str = "",
    port: int | None = None,
) -> ModelCall:
    """Measure one call of a model (one HTTP request with its retries, one batch of a local model):
    a span below the current one and a metric, named by OpenTelemetry's conventions."""
    fields: Fields = {f.OPERATION: operation, f.PROVIDER: provider, f.REQUEST_MODEL: model}
    if server:
        fields[f.SERVER] = server
    if port is not None:
        fields[f.PORT] = port
    kind = SpanKind.CLIENT if server else SpanKind.INTERNAL
    return ModelCall(f"{operation} {model}", fields, kind)


# --- events --------------------------------------------------------------------------------------


def count_batch(spent: Usage, ingredient: str, model: str, *, by_model: bool) -> None:
    """Metrics of a batch that ``model`` was ``by_model``, or that the cache answered."""
    own: Fields = {f.INGREDIENT: ingredient}
    if by_model:
        own[f.REQUEST_MODEL] = model
        _VALUES.add(spent.values, own)
        _TOKENS.add(spent.prompt_tokens, own | {f.TOKEN_TYPE: "input"})
        _TOKENS.add(spent.completion_tokens, own | {f.TOKEN_TYPE: "output"})
        _BATCH_SECONDS.record(spent.seconds, own)
    if spent.cached:
        _CACHED.add(spent.cached, own)
    if spent.failed:
        _FAILED.add(spent.failed, own)


def batch_answered(spent: Usage, fields: Fields, *, by_model: bool) -> None:
    """Report a batch; ``fields`` identify it."""
    message = "batch answered" if by_model else "answered from the cache"
    log("batch", logging.DEBUG, message, fields | fields_of(spent))


def query_started(fields: Fields) -> None:
    log("query", logging.INFO, "query started", fields)


def query_ended(spent: Usage, fields: Fields) -> None:
    """Report the end of a query; ``fields`` have its outcome."""
    _QUERIES.add(1, {f.OUTCOME: fields[f.OUTCOME]})
    log("query", logging.INFO, "query ended", fields | fields_of(spent))
    if spent.failed:
        failed: Fields = {f.QUERY_ID: fields[f.QUERY_ID], f.FAILED: spent.failed}
        log("query", logging.WARNING, "values got no valid answer", failed)


def stage_ended(fields: Fields) -> None:
    log("stage", logging.DEBUG, "stage ended", fields)


def model_loaded(model: str, seconds: float) -> None:
    """Report that weights were loaded."""
    log("model", logging.INFO, "model loaded", {f.REQUEST_MODEL: model, f.SECONDS: seconds})


def rows_computed(model: str, given: int, computed: int, again: int, extra: int) -> None:
    """Report one call of a local model: ``given`` and ``computed`` tokens of its rows, the number
    of near-ties that were computed ``again``, and the ``extra`` tokens of these."""
    fields: Fields = {
        f.REQUEST_MODEL: model,
        f.GIVEN_TOKENS: given,
        f.EVALUATED_TOKENS: computed,
        f.AGAIN: again,
        f.AGAIN_TOKENS: extra,
    }
    log("model", logging.DEBUG, "rows computed", fields)


def weights_converted(file: str, weights: str, size_bytes: int, seconds: float) -> None:
    """Report a converted copy of weights; ``weights`` is its type."""
    fields: Fields = {f.FILE: file, f.WEIGHTS: weights, f.BYTES: size_bytes, f.SECONDS: seconds}
    log("model", logging.INFO, "weights converted", fields)


def weights_tried(file: str, seconds: float) -> None:
    """Report that a child process loaded an unknown file of weights without harm."""
    log("model", logging.INFO, "weights tried", {f.FILE: file, f.SECONDS: seconds})


def weights_kept(file: str, reason: str) -> None:
    """Report that no faster copy of weights was made, with the ``reason``."""
    fields: Fields = {f.FILE: file, f.REASON: reason}
    log("model", logging.WARNING, "weights stay as they are in the file, which is slower", fields)


def request_retried(server: str, attempt: int, wait_seconds: float, problem: str) -> None:
    """Report a failed try (from 1) of an HTTP request that will be repeated.

    ``problem``: the status of the reply, or a word for the failure.
    """
    fields: Fields = {
        f.SERVER: server,
        f.ATTEMPT: attempt,
        f.WAIT_SECONDS: wait_seconds,
        f.ERROR: problem,
    }
    _RETRIES.add(1, {f.SERVER: server, f.ERROR: problem})
    log("retry", logging.INFO, "request will be tried again", fields)


def cache_trouble(text: str) -> None:
    """Report that the file of stored answers is unusable; ``text`` is that of the CacheWarning."""
    logging.getLogger("blendfusion.cache").warning("%s", text)
