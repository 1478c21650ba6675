"""The record of one run besides its calls: query, plan, times, outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

from blendfusion.models.protocol.event_fields import (
    DECIDED,
    QUERY_CALLS,
    QUERY_PLAN,
    WAITED,
    WITHHELD,
)
from blendfusion.models.protocol.events import Fields
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.run.reports.run_telemetry import Watch
from blendfusion.types import Task, Usage
from blendfusion.udfs.ask.job import Job
from blendfusion.udfs.ask.observer import StageCounts

if TYPE_CHECKING:
    from blendfusion.language.opaque.prepared_frame import PreparedFrame
    from blendfusion.models.wrappers.cache import CachedModel
    from blendfusion.options import Options
    from blendfusion.run.execution.pipeline import Counts

Outcome = Literal["running", "done", "closed", "failed"]
"""``closed``: the reader of the result stopped early."""
Place: TypeAlias = "int | None"
"""A stage, from 1; None: no stage (a plain plan, or questions before the stages)."""
Operator: TypeAlias = "tuple[Place, Task, tuple[str, ...]]"
"""The place of a question, and the models that its call names; () for the session's."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The time of one batch, in seconds since the start of the run."""

    operator: Operator
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model that a run asked."""

    name: str
    window: int
    settings: Mapping[str, str]
    prompts: bool
    """False for a Python function, which reads no prompt."""
    lists_options: bool
    """Whether its prompts list the options of a choice."""
    shots: bool
    """Whether its prompts have the built-in worked examples."""
    model_tasks: Callable[[Task], tuple[Task, ...]]
    """The tasks that the model runs for a task."""


class Run:
    """One run of a query; a context manager around it.

    ``by_operator`` is the spending by stage and question; ``batches`` are the model's batches in
    the order of their ends; ``counts`` has the counts of each stage, by number.
    """

    def __init__(
        self,
        watch: Watch,
        options: Options,
        query: str = "",
        plan: PreparedFrame | None = None,
    ) -> None:
        self.watch = watch
        self.models: dict[str, ModelRecord] = {}
        """The models that were asked, by name, in order."""
        self.decided = 0
        """Values that small models, or similarity, decided for large ones."""
        self.withheld = 0
        """Answers that are NULL because they are below their ``confidence``."""
        self.waited = 0
        """Values that other runs of the process were asking; their answers were waited for."""
        self.options = options
        self.query = query
        """The SQL; '' for a frame created without."""
        self.plan = plan
        self.counts: Mapping[int, Counts] = {}
        self.by_operator: dict[Operator, Usage] = {}
        self.batches: list[Batch] = []
        self.outcome: Outcome = "running"
        self.error: str | None = None
        """The class of the exception that ended it, if it failed."""
        self.started = datetime.now(UTC)
        self._began = perf_counter()
        self._seconds: float | None = None
        self._place: Place = None
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """The identifier in logs and spans."""
        return self.watch.id

    @property
    def seconds(self) -> float:
        """Seconds from the first requested row to the end, so far."""
        return perf_counter() - self._began if self._seconds is None else self._seconds

    def __enter__(self) -> Run:
        self.started, self._began = datetime.now(UTC), perf_counter()
        self.watch.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._seconds = self.seconds
        if error is None:
            self.outcome = "done"
        elif isinstance(error, GeneratorExit):
            self.outcome = "closed"
        else:
            self.outcome, self.error = "failed", type(error).__name__
        numbers = {DECIDED: self.decided, WITHHELD: self.withheld, WAITED: self.waited}
        about: Fields = {field: number for field, number in numbers.items() if number}
        self.watch.end(Usage.total(self.by_operator.values()), self._seconds, error, about)

    def stage(self, number: int, counts: StageCounts) -> AbstractContextManager[None]:
        """Record that stage ``number`` (from 0) runs, perhaps with others in turn."""
        return self.watch.stage(number, counts)

    @contextmanager
    def within(self, number: int) -> Iterator[None]:
        """Attribute questions within this context to this stage."""
        outer, self._place = self._place, number + 1
        try:
            with self.watch.within(number):
                yield
        finally:
            self._place = outer

    def batch(self, job: Job, n: int, spent: Usage) -> None:
        """Record that ``n`` requests were answered."""
        end = perf_counter() - self._began
        with self._lock:
            key = self._place, job.task, job.names
            self.by_operator[key] = self.by_operator.get(key, Usage()) + spent
            if spent.values:
                self.batches.append(Batch(key, end - spent.seconds, end))
                described = _record_of(job.model)
                self.models.setdefault(described.name, described)
        self.watch.batch(job, n, spent)


def run_of(options: Options, query: str, calls: int, plan: PreparedFrame | None) -> Run:
    """A run that has not started, with the ``options`` of its session."""
    staged = plan is not None and plan.staged is not None
    watch = Watch(
        questions=options.log_questions,
        about={QUERY_CALLS: calls, QUERY_PLAN: "staged" if staged else "plain"},
    )
    return Run(watch, options, query, plan)


def _record_of(model: CachedModel) -> ModelRecord:
    info, abilities, inner = model.info, model.abilities, model.inner
    return ModelRecord(
        info.name,
        info.window,
        info.settings,
        prompts=not isinstance(inner, ScriptedModel),
        lists_options=not abilities.scores_options,
        shots=abilities.shots,
        model_tasks=abilities.model_tasks,
    )
