"""The record ``Engine`` and its services: all that the modules below sessions and frames know of
one session."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

from blendfusion.udfs.ask.named_results import NamedResults

if TYPE_CHECKING:
    from datafusion import ScalarUDF

    from blendfusion.budget import Budget
    from blendfusion.datafusion.scan_run import ScanRun
    from blendfusion.language.query_text.stored_calls import StoredCall
    from blendfusion.language.query_text.typed_query import TypedQuery
    from blendfusion.models.embedders.cache import LazyEmbedder
    from blendfusion.models.registry.model_names import NamedModels
    from blendfusion.options import Options
    from blendfusion.planner.rules.constant_tests import Outcomes
    from blendfusion.planner.rules.costly_predicates_last import Expected
    from blendfusion.planner.rules.similar_first import Pays
    from blendfusion.planner.stages.split import StagedPlan
    from blendfusion.run.execution.executor import Elsewhere
    from blendfusion.run.hooks import BaseFrame, Tables
    from blendfusion.run.observe.progress import Reporter
    from blendfusion.run.observe.throughput import MeasuredUsage
    from blendfusion.run.reports.trace import Trace
    from blendfusion.types import Constraint, Task
    from blendfusion.udfs.ask.dispatcher import Dispatcher
    from blendfusion.udfs.ask.ledger import Ledger
    from blendfusion.udfs.ask.media import Media
    from blendfusion.udfs.declare.call import Call


class Hooks(Protocol):
    """The parts of a session that its services, such as a cluster, change."""

    @property
    def options(self) -> Options: ...
    @property
    def answer_outcomes(self) -> Outcomes: ...
    @property
    def expectations(self) -> Expected: ...
    @property
    def similar_first_pays(self) -> Pays: ...
    def plain_trace(self) -> Trace: ...
    def as_run(self, plan: StagedPlan) -> StagedPlan: ...
    def places_of(self, plan: StagedPlan | None) -> list[list[str]]: ...
    def elsewhere(self) -> Elsewhere | None: ...
    def note_usage(self, trace: Trace) -> None: ...
    def scan_run(self) -> ScanRun: ...
    def sql(self, query: str, *, budget: Budget | None = None) -> BaseFrame: ...


class Reading(Protocol):
    """A query with calls that was read."""

    def __call__(
        self,
        types: Mapping[int, Constraint] | None = None,
        in_bytes: Mapping[int, tuple[int, ...]] | None = None,
    ) -> TypedQuery: ...


Subqueries: TypeAlias = "Mapping[tuple[str, object], BaseFrame]"
"""Frames by what they give: ``options`` with their query, ``examples`` or a ``sample`` with the
task."""


class Calls(Protocol):
    """The calls that a session has met: see ``KnownCalls``."""

    granted: Container[str] | None

    def reading(
        self,
        engine: Engine,
        query: str,
        parameters: Mapping[str, str] | None = None,
        *,
        whole: bool = False,
    ) -> Reading:
        """The query, read once. Each call gives it with its calls as functions, which DataFusion
        knows from there on."""
        ...

    def know(self, engine: Engine, text: str) -> None:
        """Register the calls whose functions a part of a plan names."""
        ...

    def settle(self, engine: Engine, calls: Iterable[Call], dispatcher: Dispatcher) -> None:
        """Read the options, examples and samples that subqueries give to calls."""
        ...

    def name_of_media(self, engine: Engine) -> ScalarUDF:
        """The function of the names of bytes."""
        ...

    def subqueries(self, engine: Engine, task: Task) -> Subqueries:
        """The frames of the subqueries that give ``task`` its options, examples and sample."""
        ...


class Texts:
    """The texts of queries that a session knows by name, and frames of others."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.questions: dict[str, StoredCall] = {}
        """The calls of stored questions, by name."""

    def sql(self, query: str) -> BaseFrame:
        """The frame of a query."""
        return self._hooks.sql(query)


class Plans:
    """The knowledge of the planner about a session."""

    def __init__(self, hooks: Hooks, rules_off: tuple[str, ...]) -> None:
        self._hooks = hooks
        self.rules_off = rules_off
        self.warnings: set[str] = set()
        """The reasons for plain plans of which a warning was given."""

    @property
    def outcomes(self) -> Outcomes:
        """The values of conditions for all answers."""
        return self._hooks.answer_outcomes

    @property
    def expectations(self) -> Expected:
        """The pass rates and costs of predicates."""
        return self._hooks.expectations

    @property
    def similar_first_pays(self) -> Pays:
        """Where the rule ``similar_first`` orders rows."""
        return self._hooks.similar_first_pays

    def as_run(self, plan: StagedPlan) -> StagedPlan:
        """A plan as this session runs it."""
        return self._hooks.as_run(plan)

    def places_of(self, plan: StagedPlan | None) -> list[list[str]]:
        """Where each stage of a plan runs, for EXPLAIN. None stands for a query without stages."""
        return self._hooks.places_of(plan)


class Runs:
    """The runs of plans: what they ask with, share and spend."""

    def __init__(
        self, hooks: Hooks, models: NamedModels, embedder: LazyEmbedder, ledger: Ledger
    ) -> None:
        self._hooks, self._models = hooks, models
        self.embedder, self.ledger = embedder, ledger
        self.kept = NamedResults()
        """The groups and entities that queries keep by names."""
        self.reporter: Reporter | None = None
        """Shows the progress of runs; None: a line, as the option ``progress`` says."""
        self._answering: Dispatcher | None = None

    @cached_property
    def speeds(self) -> MeasuredUsage:
        """How fast the session's models answer."""
        from blendfusion.run.observe.throughput import MeasuredUsage

        return MeasuredUsage()

    @cached_property
    def media(self) -> Media:
        """The images and sounds of the current runs."""
        from blendfusion.udfs.ask.media import Media

        return Media()

    def dispatcher(self, trace: Trace, budget: Budget | None = None) -> Dispatcher:
        """The dispatcher of one run's requests, limited by ``budget`` and the session's budget."""
        from blendfusion.models.stores.answer_spill import AnswerSpill
        from blendfusion.models.wrappers.cascade import targets_in
        from blendfusion.udfs.ask.dispatcher import Dispatcher

        options, models = self._hooks.options, self._models
        trace.ledger = ledger = self.ledger.for_query(budget)
        trace.first_model = lambda: models.own(options).name
        dispatcher = Dispatcher(
            lambda: models.own(options),
            trace,
            options.on_error,
            options.redaction,
            ledger,
            self.embedder,
            image_urls=options.image_urls,
            targets=targets_in(options),
            named=lambda names: models.of(names, options),
            spill=AnswerSpill(options.spill_above, options.spill_folder or None),
        )
        dispatcher.kept = self.kept
        trace.vectors_by_call, trace.results_by_call = dispatcher.vectors, dispatcher.results
        return dispatcher

    def plain_dispatcher(self) -> Dispatcher:
        """The dispatcher of calls that DataFusion evaluates: that of the current run, if there is
        one."""
        if self._answering is not None:
            return self._answering
        return self.dispatcher(self._hooks.plain_trace())

    @contextmanager
    def answering(self, dispatcher: Dispatcher) -> Iterator[None]:
        """Use ``dispatcher`` for calls that DataFusion evaluates within this context."""
        before, self._answering = self._answering, dispatcher
        try:
            yield
        finally:
            self._answering = before

    def elsewhere(self) -> Elsewhere | None:
        """The function that runs a stage in the cluster; None without one."""
        return self._hooks.elsewhere()

    def scan_run(self) -> ScanRun:
        """A new run of a query."""
        return self._hooks.scan_run()

    def note_usage(self, trace: Trace) -> None:
        """Add what a run has spent to the book of usage, after the run."""
        self._hooks.note_usage(trace)


@dataclass(frozen=True, slots=True)
class Engine:
    """The services of a session. It holds the session, as the context of the tables: keep none."""

    texts: Texts
    plans: Plans
    runs: Runs
    tables: Tables
    models: NamedModels
    calls: Calls
    options: Options
