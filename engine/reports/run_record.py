"""One run of a query, as its trace knows it besides the calls: what of, when, how it went and ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

from blendfusion.models.protocol.event_fields import DECIDED, QUERY_CALLS, QUERY_PLAN, WITHHELD
from blendfusion.models.protocol.events import Fields
from blendfusion.models.scripted import ScriptedModel
from blendfusion.reports.run_telemetry import Watch
from blendfusion.types import Task, Usage
from blendfusion.udfs.ask.dispatcher import StageCounts
from blendfusion.udfs.ask.question import Asked

if TYPE_CHECKING:
    from blendfusion.execution.pipeline import Counts
    from blendfusion.frame import Prepared
    from blendfusion.models.wrappers.cache import CachedModel
    from blendfusion.options import Options
    from blendfusion.session import Session

Outcome = Literal["running", "done", "closed", "failed"]
"""``closed``: whoever reads the result wanted no more of it."""
Place: TypeAlias = "int | None"
"""A stage, from 1; None: no stage (a plain plan, or what is asked before the stages)."""
Operator: TypeAlias = "tuple[Place, Task, tuple[str, ...]]"
"""Where what is asked of whom: of the models that a call names, () where it names none."""


@dataclass(frozen=True, slots=True)
class Batch:
    """When one batch was asked: seconds since the run began."""

    operator: Operator
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Described:
    """A model that a run asked."""

    name: str
    window: int
    settings: Mapping[str, str]
    prompts: bool
    """False: it is a Python function, which reads no prompt."""
    lists_options: bool
    """The options of a choice stand in its prompts."""
    put_as: Callable[[Task], Task]
    """What is asked for a task, in the place of some."""


class Run:
    """One run of a query; a context manager around it.

    ``by_operator`` is what was spent, by stage and question; ``batches`` are those that a model was
    asked, in the order in which they ended; ``counts`` hold what each stage saw, by its number.
    """

    def __init__(
        self,
        watch: Watch,
        options: Options,
        query: str = "",
        plan: Prepared | None = None,
    ) -> None:
        self.watch = watch
        self.models: dict[str, Described] = {}
        """The models that were asked, by their names, in order."""
        self.decided = 0
        """Values that small models, or similarity, decided for large ones."""
        self.withheld = 0
        """Answers that are NULL as they are less probable than wanted."""
        self.options = options
        self.query = query
        """The SQL; '' for a frame that was made without."""
        self.plan = plan
        self.counts: Mapping[int, Counts] = {}
        self.by_operator: dict[Operator, Usage] = {}
        self.batches: list[Batch] = []
        self.outcome: Outcome = "running"
        self.error: str | None = None
        """The class of what ended it, if it failed."""
        self.started = datetime.now(UTC)
        self._began = perf_counter()
        self._seconds: float | None = None
        self._place: Place = None
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """As logs and spans name it."""
        return self.watch.id

    @property
    def seconds(self) -> float:
        """From the first row that was wanted to the end, so far."""
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
        told = {DECIDED: self.decided, WITHHELD: self.withheld}
        about: Fields = {field: number for field, number in told.items() if number}
        self.watch.end(Usage.total(self.by_operator.values()), self._seconds, error, about)

    def stage(self, number: int, counts: StageCounts) -> AbstractContextManager[None]:
        """Stage ``number`` (from 0) runs, perhaps with others in turn."""
        return self.watch.stage(number, counts)

    @contextmanager
    def within(self, number: int) -> Iterator[None]:
        """Meanwhile it is this stage that asks."""
        outer, self._place = self._place, number + 1
        try:
            with self.watch.within(number):
                yield
        finally:
            self._place = outer

    def batch(self, asked: Asked, n: int, spent: Usage) -> None:
        """``n`` requests were answered."""
        end = perf_counter() - self._began
        with self._lock:
            key = self._place, asked.task, asked.names
            self.by_operator[key] = self.by_operator.get(key, Usage()) + spent
            if spent.values:
                self.batches.append(Batch(key, end - spent.seconds, end))
                described = _described(asked.model)
                self.models.setdefault(described.name, described)
        self.watch.batch(asked, n, spent)


def run_of(session: Session, query: str, calls: int, plan: Prepared | None) -> Run:
    """A run in ``session``, not begun yet."""
    staged = plan is not None and plan.staged is not None
    watch = Watch(
        questions=session.options.log_questions,
        about={QUERY_CALLS: calls, QUERY_PLAN: "staged" if staged else "plain"},
    )
    return Run(watch, session.options, query, plan)


def _described(model: CachedModel) -> Described:
    info, inner = model.info, model.inner
    return Described(
        info.name,
        info.window,
        info.settings,
        prompts=not isinstance(inner, ScriptedModel),
        lists_options=not getattr(inner, "scores_options", False),
        put_as=model.put_as,
    )
