"""Declares sessions and frames for the modules that ``Session`` and ``Frame`` are made of.

Those modules name the two classes here, so imports go one way. Services change how a session runs:
they override the methods of ``BaseSession`` that have a body.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

import pyarrow as pa
from datafusion import DataFrame, SQLOptions

from blendfusion.datafusion.context import OwnContext
from blendfusion.datafusion.unnamed_tables import UnnamedTable
from blendfusion.errors import OptionError
from blendfusion.services import missing_method

if TYPE_CHECKING:
    from datafusion import Expr
    from datafusion.catalog import Schema, SchemaProvider, Table
    from datafusion.plan import LogicalPlan

    from blendfusion.budget import Budget
    from blendfusion.datafusion.scan_run import ScanRun
    from blendfusion.files.csv_lines import CsvFile
    from blendfusion.language.opaque.opaque_tables import LeafMaker
    from blendfusion.language.opaque.prepared_frame import PreparedFrame
    from blendfusion.language.opaque.views import Views
    from blendfusion.language.query_text.source_map import Translation
    from blendfusion.models.embedders.cache import CachedEmbedder, LazyEmbedder
    from blendfusion.models.protocol.model import Model
    from blendfusion.models.registry.model_names import NamedModels
    from blendfusion.models.stores.memory import AnswerStore
    from blendfusion.models.wrappers.cache import CachedModel
    from blendfusion.options import Options
    from blendfusion.planner.rules.similar_first import Pays
    from blendfusion.planner.stages.split import StagedPlan
    from blendfusion.run.engine import Calls, Engine, Plans, Runs, Texts
    from blendfusion.run.execution.executor import Elsewhere, Execution
    from blendfusion.run.execution.pipeline import Counts
    from blendfusion.run.execution.scratch_context import Workbench
    from blendfusion.run.reports.estimate import Estimate
    from blendfusion.run.reports.trace import Trace
    from blendfusion.udfs.ask.dispatcher import Dispatcher
    from blendfusion.udfs.ask.ledger import DailyLimits, Ledger


class Workers(Protocol):
    """Processes that run parts of plans, and hold models."""

    def share(self, store: AnswerStore) -> AnswerStore:
        """The store of a session: one that workers can open."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


@dataclass(frozen=True, slots=True)
class Verb:
    """A frame made from another by a method of DataFrame."""

    method: Callable[..., DataFrame]
    below: BaseFrame
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Text:
    """A frame made from SQL, in which calls are functions."""

    sql: str
    options: SQLOptions | None
    parameters: Mapping[str, Any] | None
    named: Mapping[str, Any]
    tables: Mapping[str, UnnamedTable] = field(default_factory=dict)
    """The tables that stand for frames in it."""
    written: str = ""
    """The text as the user wrote it."""
    unread: tuple[str, ...] = ()
    """The parts of it that say nothing of the types of answers, since sqlglot cannot read them."""
    dialect: Translation | None = None
    """How ``written`` came from a text in another dialect."""


Origin = Verb | Text | None
"""How a frame was made; None: it reads a table."""


@dataclass(slots=True)
class Latest:
    """The latest run of a frame, and the expected values of the next one, if known."""

    trace: Trace | None = None
    execution: Execution | None = None
    expected: int | None = None


class Tables(OwnContext):
    """The tables of a session, and frames over them."""

    if TYPE_CHECKING:  # what ``Session`` has

        @cached_property
        def leaf_maker(self) -> LeafMaker: ...
        @cached_property
        def views(self) -> Views: ...
        def new_frame(
            self, df: DataFrame, origin: Origin = None, budget: Budget | None = None
        ) -> BaseFrame: ...
        def new_table(self, table: pa.Table) -> BaseFrame: ...
        def new_unnamed(self, df: DataFrame) -> BaseFrame: ...
        def table(self, name: str) -> BaseFrame: ...
        def workbench_source(self) -> Callable[[], Workbench]: ...


class BaseSession(Tables):
    """A session, as its services know it."""

    options: Options
    lazy_embedder: LazyEmbedder
    ledger: Ledger
    models: NamedModels
    texts: Texts
    plans: Plans
    runs: Runs
    cluster: Workers | None = None
    """The workers; None: everything runs in this process."""
    configured = False
    """Whether DataFusion has settings that workers do not know."""

    if TYPE_CHECKING:  # what ``Session`` has
        _store: AnswerStore
        csv_texts: dict[str, Sequence[CsvFile]]

        @property
        def calls(self) -> Calls: ...
        @property
        def embedder(self) -> CachedEmbedder: ...
        @property
        def model(self) -> CachedModel: ...
        @property
        def model_names(self) -> tuple[str, ...]: ...
        def ingredient_names(self) -> set[str]: ...
        def as_frame(self, value: object) -> object: ...
        def create_dataframe_from_logical_plan(self, plan: LogicalPlan) -> BaseFrame: ...
        def from_arrow(self, data: Any, name: str | None = None) -> BaseFrame: ...
        def sql(self, query: str, *, budget: Budget | None = None) -> BaseFrame: ...  # type: ignore[override]

    @property
    def engine(self) -> Engine:
        """The services of this session."""
        from blendfusion.run.engine import Engine

        return Engine(
            self.texts, self.plans, self.runs, self, self.models, self.calls, self.options
        )

    def add_hidden_schema(self, name: str, schema: Schema | SchemaProvider) -> None:
        """Add a schema whose tables no list shows."""
        raise NotImplementedError

    def update_tables(self, text: str) -> None:
        """Make the tables of the session those that there are now, before ``text`` names some."""

    def note_registration(
        self, method: str, name: str, path: object, arguments: Mapping[str, Any]
    ) -> None:
        """Remember the call of a method that made a table of files."""

    def as_run(self, plan: StagedPlan) -> StagedPlan:
        """A plan as this session runs it."""
        return plan

    def places_of(self, plan: StagedPlan | None) -> list[list[str]]:
        """Where each stage of a plan runs, for EXPLAIN; nothing without a cluster. None stands for
        a query without stages."""
        return [[]] * (1 if plan is None else len(plan.stages))

    def daily_limits(self, budget: Budget) -> DailyLimits | None:
        """The limits of a budget over days, which sessions share; None for another."""
        if budget.days is not None:
            raise OptionError(
                "days=… needs the service blendfusion/services/usage, which is not installed"
            )
        return None

    def note_usage(self, trace: Trace) -> None:
        """Add what a run has spent to the book of usage, after the run."""

    def release(self) -> None:
        """Close what services hold until it is next used."""

    def scan_run(self) -> ScanRun:
        """A new run of a query."""
        from blendfusion.datafusion.scan_run import ScanRun

        return ScanRun()

    def scan_notes(self, frame: DataFrame) -> list[str]:
        """The queries that scans of a DataFusion frame send to other systems, for EXPLAIN."""
        return []

    def foreign_table(self, value: object) -> Table | None:
        """A table of another library as a table of DataFusion; None for any other value."""
        return None

    def elsewhere(self) -> Elsewhere | None:
        """The function that runs a stage in the cluster; None without one."""
        return None

    def pool_model(self, spec: object, model: Model, options: Options) -> Model:
        """A model as the session asks it: in its cluster, or here."""
        return model

    def telling(self) -> AbstractContextManager[None]:
        """Raise the original exceptions of what scans inside DataFusion, which passes on only their
        text."""
        return nullcontext()

    @property
    def similar_first_pays(self) -> Pays:
        """Where the rule ``similar_first`` orders rows."""
        from blendfusion.planner.rules.similar_first import always, never

        return always if self.options.similar_first is True else never


class BaseFrame(DataFrame):
    """A frame, as the modules below ``Frame`` know it."""

    if TYPE_CHECKING:  # what ``Frame`` has
        budget: Budget | None
        latest: Latest
        origin: Origin
        renewed: Callable[[], BaseFrame | None] | None
        source: BaseFrame | None
        statement: Callable[[pa.Table], BaseFrame] | None
        unnamed_table: UnnamedTable | None
        within: object | None

        @cached_property
        def prepared(self) -> PreparedFrame: ...
        @property
        def engine(self) -> Engine: ...
        @property
        def session(self) -> BaseSession: ...
        @property
        def trace(self) -> Trace: ...
        @property
        def last_counts(self) -> dict[int, Counts]: ...
        def answer_tables(
            self, dispatcher: Dispatcher, *, eager: bool
        ) -> Generator[pa.Table, None, None]: ...
        def estimate(self) -> Estimate: ...
        def explain_text(
            self, *, analyze: bool = False, verbose: bool = False, estimates: bool = True
        ) -> str: ...
        def prepare(self, *, parts: bool, careful: bool = False) -> PreparedFrame: ...
        def running(self) -> AbstractContextManager[None]: ...
        def _result(self) -> DataFrame: ...
        def distinct(self) -> Self: ...
        def limit(self, count: int, offset: int = 0) -> Self: ...
        def select(self, *exprs: Expr | str) -> Self: ...
        def with_budget(self, budget: Budget | None) -> Self: ...
        def with_column_renamed(self, old_name: str, new_name: str) -> Self: ...

    def _with_samples(self, prepared: PreparedFrame, within: object) -> PreparedFrame:
        """A plan whose aggregates come from samples, where ``within`` asks for them. Raises
        OptionError without the service that takes these."""
        raise OptionError(
            f"the option approximate: {missing_method('approximately')}",
            hint="SET blendfusion.approximate = 0",
        )

    def _bounds_text(self) -> str:
        """The text about the bounds of the latest run."""
        return ""
