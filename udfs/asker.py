"""What stands between ingredients and a model: batches, interruption, errors, observation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Protocol

from blendfusion.errors import QueryError
from blendfusion.models.cached import CachedModel
from blendfusion.models.embed import Embedder, no_embedder
from blendfusion.models.model import Values
from blendfusion.options import OnError
from blendfusion.redaction import Redaction
from blendfusion.types import Answer, ModelInfo, Task
from blendfusion.udfs.call import Call
from blendfusion.udfs.ledger import Ledger
from blendfusion.udfs.outcome import failure
from blendfusion.udfs.serving import Serve, directly


class UnknownAnswerError(Exception):
    """Something would have to be asked."""


class StageCounts(Protocol):
    """What a stage saw so far: rows in and out, in how many chunks, in how many seconds of its own."""

    rows_in: int
    rows_out: int
    chunks: int
    seconds: float


class Observer(Protocol):
    """Sees what is asked and answered, batch by batch. Called on the asking thread."""

    def stage(self, number: int, counts: StageCounts) -> AbstractContextManager[None]:
        """Meanwhile stage ``number`` (from 0) of a plan runs, and asks; ``counts`` grow with it."""
        ...

    def expect(self, n: int) -> None:
        """``n`` more requests are about to be made."""
        ...

    def asking(self, task: Task, n: int) -> AbstractContextManager[None]:
        """Meanwhile ``n`` requests are put to the model; ``batch`` tells before its end what came."""
        ...

    def batch(
        self, task: Task, values: Sequence[Values], answers: Sequence[Answer], seconds: float
    ) -> None:
        """A batch was answered in ``seconds``: one answer a tuple of values, in order."""
        ...

    def lost(self, task: Task, failed: Mapping[Values, Answer]) -> None:
        """In the result, these values are NULL for want of an answer. May be told twice of a value."""
        ...


class Asker:
    """Puts the requests of one run to one model.

    Requests go in batches of the model's size, so that a run can be interrupted between them
    (KeyboardInterrupt, a closed stream). What was answered stays in the cache and in the trace, and of
    a batch that is interrupted or fails, what the model has told. The model is
    looked up when the first request is made: a run without one needs none.
    """

    def __init__(
        self,
        model: Callable[[], CachedModel],
        observer: Observer,
        on_error: OnError = "null",
        redaction: Redaction | None = None,
        ledger: Ledger | None = None,
        embedder: Callable[[], Embedder] | None = None,
        *,
        image_urls: bool = True,
    ) -> None:
        self._source = model
        self.observer = observer
        self.on_error = on_error
        self.redaction = redaction or Redaction()
        self.ledger = ledger or Ledger()
        self.embedder = embedder or no_embedder
        """Looked up when the first text is to be embedded. Raises ModelNotFound."""
        self.image_urls = image_urls
        """Whether models are asked about images at URLs."""
        self.tokens = 0
        """Tokens evaluated and generated so far."""
        self.hits = 0
        """Answers that the cache gave so far."""
        self.serve: Serve = directly
        """Does what a thread of DataFusion's wants to have asked."""
        self._only_known = False
        self.error: Exception | None = None
        """What a call raised inside DataFusion, which passes on only its text."""
        self._values: dict[Call, dict[Values, object]] = {}
        self._answered: dict[Task, dict[Values, Answer]] = {}
        self._settled: dict[Task, Task] = {}

    @cached_property
    def model(self) -> CachedModel:
        """The model behind its cache, once it is known to answer (a server tells its window then).

        Raises ModelNotFound, ModelFailed, or OptionError where a cost is limited and it has no price.
        """
        model = self._source()
        self.ledger.open(model)
        model.check()
        return model

    @property
    def outages(self) -> Sequence[str]:
        """What is to be told of models that were left out in this run."""
        return self.model.outages if "model" in self.__dict__ else ()

    @property
    def info(self) -> ModelInfo:
        return self.model.info

    @property
    def at_once(self) -> int:
        """How many requests take the model no longer than one; 1 as long as none was made."""
        return self.model.at_once if "model" in self.__dict__ else 1

    def settle(self, task: Task, options: Sequence[str]) -> None:
        """From here on ``task``, whose options come from a subquery, is asked with ``options``."""
        self._settled[task] = with_options(task, options)

    def is_settled(self, task: Task) -> bool:
        return task in self._settled

    def certain(self, task: Task) -> Answer | None:
        """The answer that no model is needed for: NULL from an empty set of options, or the only
        option. None if a model must be asked. Raises QueryError for options that were not read."""
        constraint = self._settled.get(task, task).constraint
        choice = constraint.item or constraint
        if choice.query is not None:
            raise QueryError(
                f"options => ({choice.query}) cannot be read here",
                hint="Options come from a subquery in queries of a session: bf.connect().",
            )
        if choice.kind != "choice" or len(choice.options) > 1:
            return None
        if not choice.options:
            return Answer(None)
        return Answer(choice.options[0]) if constraint.item is None else None

    def ask(
        self,
        task: Task,
        values: Sequence[Values],
        call: Call | None = None,
        *,
        put: Task | None = None,
    ) -> list[Answer]:
        """One answer a tuple of values, in order; equal tuples are asked once a run.

        ``put``: what the model is asked, where it is not ``task`` itself. Where ``call``, for which they
        are asked, says so, AnswerError is raised after the batch in which one failed.
        """
        certain = self.certain(task)
        if certain is not None:
            return [certain] * len(values)
        put = put or self._settled.get(task, task)
        answered = self._answered.setdefault(put, {})
        new = list(dict.fromkeys(v for v in values if v not in answered))
        if new:
            hits = self.model.known(put, new)
            missing = [v for v in new if v not in hits]
            if missing and self._only_known:
                raise UnknownAnswerError
            self.hits += len(hits)
            self.observer.expect(len(missing))
            if hits:
                self.observer.batch(task, list(hits), list(hits.values()), 0.0)
                answered.update(hits)
            asked = 0
            while asked < len(missing):
                size = self.ledger.admit(put, len(missing) - asked, self.model)
                with self.observer.asking(task, size):
                    self._batch(task, put, missing[asked : asked + size], answered)
                asked += size
                if call is not None and self.policy(call) == "raise":
                    self._stop_at_failures(call, missing[:asked], answered)
        return [answered[v] for v in values]

    def policy(self, call: Call) -> OnError:
        """What becomes of failed answers to ``call``."""
        return call.on_error or self.on_error

    def _stop_at_failures(
        self, call: Call, asked: Sequence[Values], answered: Mapping[Values, Answer]
    ) -> None:
        failed = {v: answered[v] for v in asked if answered[v].error is not None}
        if call.aggregate:  # what is too long is read in parts
            failed = {v: a for v, a in failed.items() if not a.too_long}
        if failed:
            raise failure(call, failed, len(asked), self.redaction)

    @contextmanager
    def served_by(self, serve: Serve) -> Iterator[None]:
        """Meanwhile ``serve`` does what DataFusion's threads want to have asked."""
        before, self.serve = self.serve, serve
        try:
            yield
        finally:
            self.serve = before

    @contextmanager
    def only_known(self) -> Iterator[None]:
        """Meanwhile nothing is asked: what is not known already raises UnknownAnswerError."""
        self._only_known = True
        try:
            yield
        finally:
            self._only_known = False

    def values_of(self, call: Call) -> dict[Values, object]:
        """What this run knows already: the decoded answer for each tuple that ``call`` has met."""
        return self._values.setdefault(call, {})

    def _batch(
        self, task: Task, put: Task, values: list[Values], into: dict[Values, Answer]
    ) -> None:
        told: dict[int, Answer] = {}
        start = perf_counter()
        try:
            self.model.answer_each(put, values, told.__setitem__)
        finally:  # what was answered before an error or an interruption counts like the rest
            seconds = perf_counter() - start
            places = sorted(told)
            asked, answers = [values[place] for place in places], [told[p] for p in places]
            spent = self.ledger.settle(put, len(values), answers, seconds)
            into.update(zip(asked, answers, strict=True))
            self.tokens += spent.evaluated_tokens + spent.completion_tokens
            if places:
                self.observer.batch(task, asked, answers, seconds)


def with_options(task: Task, options: Sequence[str]) -> Task:
    """``task`` with these for the options that its subquery gave."""
    constraint = task.constraint
    choice = replace(constraint.item or constraint, query=None, options=tuple(options))
    if constraint.item is not None:
        choice = replace(constraint, item=choice)
    return replace(task, constraint=choice)


class NullObserver:
    """Sees nothing: for plain functions outside a session."""

    def lost(self, task: Task, failed: Mapping[Values, Answer]) -> None:
        pass

    def expect(self, n: int) -> None:
        pass

    def asking(self, task: Task, n: int) -> AbstractContextManager[None]:
        return nullcontext()

    def stage(self, number: int, counts: StageCounts) -> AbstractContextManager[None]:
        return nullcontext()

    def batch(
        self, task: Task, values: Sequence[Values], answers: Sequence[Answer], seconds: float
    ) -> None:
        pass
