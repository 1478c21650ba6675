"""A DataFusion session with a model, a cache, ingredients and the planner."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.catalog import Catalog, Schema

from blendfusion.budget import Budget, PriceList, Prices, checked_budget
from blendfusion.datafusion.debug_logs import withhold_debug_logs
from blendfusion.datafusion.method_gate import gate_errors
from blendfusion.datafusion.unnamed_tables import HIDDEN_CATALOG, STAGE_SCHEMA, UNNAMED_SCHEMA
from blendfusion.errors import ModelNotFound, OptionError, given_names
from blendfusion.models.embedders.cache import LazyEmbedder
from blendfusion.models.registry.model_names import NamedModels
from blendfusion.models.stores.memory import AnswerStore, MemoryStore
from blendfusion.options import OF_MODELS, Options
from blendfusion.services import missing_method
from blendfusion.services.session_methods import SessionMethods
from blendfusion.udfs.ask.ledger import Ledger
from blendfusion.udfs.ask.named_results import NamedResults
from blendfusion.udfs.register.open_during import open_during_function
from blendfusion.udfs.register.parse_money import parse_money_function

if TYPE_CHECKING:  # the rest is imported when it is first used
    from datafusion import RuntimeEnvBuilder, SessionConfig, SQLOptions
    from datafusion.catalog import SchemaProvider
    from datafusion.plan import ExecutionPlan

    from blendfusion.datafusion.named_tables import NamedTables
    from blendfusion.datafusion.user_context import UserContext
    from blendfusion.files.csv_lines import CsvFile
    from blendfusion.files.query_files import QueryFiles
    from blendfusion.frame import Frame
    from blendfusion.language.opaque.opaque_tables import LeafMaker
    from blendfusion.language.opaque.views import Views
    from blendfusion.language.query_text.stored_calls import StoredCall
    from blendfusion.models.embedders.cache import CachedEmbedder
    from blendfusion.models.embedders.embedder import Embedder
    from blendfusion.models.protocol.model import Model
    from blendfusion.models.wrappers.cache import CachedModel
    from blendfusion.models.wrappers.failover import Models
    from blendfusion.planner.rules.constant_tests import Outcomes
    from blendfusion.planner.rules.costly_predicates_last import Expected
    from blendfusion.prepare.function_registry import KnownCalls
    from blendfusion.run.execution.scratch_context import Workbench
    from blendfusion.run.hooks import Workers
    from blendfusion.run.observe.progress import Reporter
    from blendfusion.run.observe.throughput import MeasuredUsage
    from blendfusion.run.reports.trace import Trace
    from blendfusion.udfs.ask.dispatcher import Dispatcher
    from blendfusion.udfs.ask.media import Media

INTERNAL = frozenset(
    "answer_outcomes answering as_frame as_run attached calls change_option check_process configured copied_config csv_texts "
    "dispatcher documents "
    "elsewhere enums expectations file_tables files_of functions has_last information ingredient_names kept kept_views lance_place model_columns registered_tables version_of "
    "lazy_embedder leaf_maker new_frame new_table new_unnamed own_names places_of plain_dispatcher plain_frame "
    "plan_warnings pooled query_files reads_paths remembered_vectors rules_off similar_first_pays small_rows "
    "add_hidden_schema engine foreign_table note_registration registration_of scan_notes speeds table_functions telling time_zone update_tables views workbench_source".split()
)
"""The names of a session for other modules of the package; completion and the reference omit
them."""
_TABLES = 20
"""The tables that the display of a session names."""


def _rules_off(options: Options) -> tuple[str, ...]:
    """The rules that ``options`` switch off. Raises OptionError for unknown and required rules."""
    if not options.rules_off and options.similar_first is not False:
        return ()
    from blendfusion.planner.rules import rules_off

    return rules_off(options)


def _adopt(context: SessionContext) -> UserContext:
    from blendfusion.datafusion.user_context import UserContext

    return UserContext(context)


@gate_errors(lambda session: session.options.redaction)
class Session(SessionMethods):
    """A ``datafusion.SessionContext`` whose SQL and frames may ask a model.

    All of DataFusion's registration functions work; ``sql`` and ``table`` return frames. Settings
    and answers belong to the session. A context manager: ``close`` frees the model, and so does
    dropping the session and its frames. A session belongs to its process: it raises ProcessError in
    a fork, and when pickled.
    """

    def __init__(
        self,
        model: Models = None,
        options: Options | None = None,
        config: SessionConfig | None = None,
        runtime: RuntimeEnvBuilder | None = None,
        store: AnswerStore | None = None,
        budget: Budget | None = None,
        prices: PriceList | Prices = None,
        embedder: str | Embedder | None = "auto",
        ctx: SessionContext | None = None,
        cluster: Workers | None = None,
    ) -> None:
        if isinstance(model, SessionContext):
            raise OptionError(
                "a DataFusion context is no model", hint="Name it: bf.connect(ctx=context)."
            )
        adopted = None if ctx is None else _adopt(ctx)
        options = options or Options()
        ledger = Ledger(budget, prices if isinstance(prices, Prices) else Prices(prices))
        super().__init__(config, runtime, adopted)
        self.options = options
        self.lazy_embedder = LazyEmbedder(embedder, options)
        self.lazy_embedder.purse = ledger
        self.kept = NamedResults()
        withhold_debug_logs(options)
        self.rules_off = _rules_off(options)
        self.ledger = ledger
        """The session's spending so far, and its limits."""
        self.questions: dict[str, StoredCall] = {}
        """The calls of stored questions, by name."""
        store = MemoryStore() if store is None else store
        self._store: AnswerStore = store if cluster is None else cluster.share(store)
        ledger.daily = self.daily_limits(ledger.budget)
        self.cluster = cluster  # type: ignore[assignment]  # the service knows more of it
        self.configured = config is not None or ctx is not None
        if cluster is not None:
            weakref.finalize(self, cluster.close)
        self.models = NamedModels(model, self._store, self.pool_model)
        """The session's own models, and those that calls name."""
        # A named model is looked up at once, so that a typing error shows here; the packaged one
        # only when it is needed, so that plain SQL works without any.
        if model is not None and model != "auto":
            self.models.own(options)
        self.csv_texts: dict[str, Sequence[CsvFile]] = {}
        """The CSV files of tables, by the names or the places of these."""
        self._answering: Dispatcher | None = None
        self.reporter: Reporter | None = None
        """Shows the progress of runs; None: a line, as the option ``progress`` says."""
        self.plan_warnings: set[str] = set()
        """The reasons for plain plans of which a warning was given."""
        self._hidden = Catalog.memory_catalog()
        SessionContext.register_catalog_provider(self, HIDDEN_CATALOG, self._hidden)
        self.add_hidden_schema(STAGE_SCHEMA, Schema.memory_schema())
        self.add_hidden_schema(UNNAMED_SCHEMA, Schema.memory_schema())
        self.register_udf(open_during_function())
        self.register_udf(parse_money_function())

    # --- the parts of a session, each made when it is first used ----------------------------------

    @cached_property
    def calls(self) -> KnownCalls:
        """The functions that this session's queries may call."""
        from blendfusion.prepare.function_registry import KnownCalls

        return KnownCalls()

    @cached_property
    def information(self) -> NamedTables:
        """The tables behind SHOW and ``information_schema``."""
        from blendfusion.datafusion.named_tables import NamedTables
        from blendfusion.language.query_text.information import INFORMATION

        tables = NamedTables()
        self.add_hidden_schema(INFORMATION, tables)
        return tables

    @cached_property
    def leaf_maker(self) -> LeafMaker:
        """Creates the opaque tables of this session."""
        from blendfusion.language.opaque.opaque_tables import LeafMaker

        maker = LeafMaker()
        for name, schema in maker.schemas().items():
            self.add_hidden_schema(name, schema)
        return maker

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

    @cached_property
    def query_files(self) -> QueryFiles:
        """The files that queries name by their paths."""
        from blendfusion.files.query_files import QueryFiles

        return QueryFiles()

    @cached_property
    def views(self) -> Views:
        """The queries of views."""
        from blendfusion.language.opaque.views import Views

        return Views()

    def add_hidden_schema(self, name: str, schema: Schema | SchemaProvider) -> None:
        """Add a schema whose tables no list shows."""
        self._hidden.register_schema(name, schema)

    if not TYPE_CHECKING:  # a type checker refuses what is not declared

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError, with the service that a method belongs to."""
            if name.startswith("_") or hasattr(type(self), name):
                object.__getattribute__(self, name)  # the error as it is
            text = missing_method(name) or f"'Session' object has no attribute '{name}'"
            raise AttributeError(text, name=name, obj=self)

    # --- the model -------------------------------------------------------------------------------

    @property
    def model(self) -> CachedModel:
        """The session's model, behind the session's answer cache. Raises ModelNotFound."""
        return self.models.own(self.options)

    @property
    def model_names(self) -> tuple[str, ...]:
        """The names of the session's models, in order; () for the default one before its first
        question."""
        return self.models.own_names

    @property
    def embedder(self) -> CachedEmbedder:
        """The session's embedder, which remembers recent vectors. Raises ModelNotFound."""
        return self.lazy_embedder()

    def remembered_vectors(self) -> Embedder:
        """The vectors that ``embedder`` remembers; embeds nothing."""
        return self.lazy_embedder.known_vectors()

    def register_model(self, name: str, model: str | Model) -> None:
        """Register ``model`` under ``name`` for calls: ``llm_filter('…', x, model => 'large')``.

        ``model`` is any value that ``bf.connect`` takes. The session's own models, by the text
        passed to ``bf.connect``, and the packaged models 'smollm2' and 'gemma' need no
        registration. Raises ModelNotFound for an unavailable model.
        """
        self.models.register(name, model, self.options)

    def dispatcher(self, trace: Trace, budget: Budget | None = None) -> Dispatcher:
        """The dispatcher of one run's requests, limited by ``budget`` and the session's budget."""
        from blendfusion.models.stores.answer_spill import AnswerSpill
        from blendfusion.models.wrappers.cascade import targets_in
        from blendfusion.udfs.ask.dispatcher import Dispatcher

        trace.ledger = ledger = self.ledger.for_query(budget)
        trace.first_model = lambda: self.model.name
        options = self.options
        dispatcher = Dispatcher(
            lambda: self.model,
            trace,
            options.on_error,
            options.redaction,
            ledger,
            self.lazy_embedder,
            image_urls=options.image_urls,
            targets=targets_in(options),
            named=lambda names: self.models.of(names, options),
            spill=AnswerSpill(options.spill_above, options.spill_folder or None),
        )
        dispatcher.kept = self.kept
        trace.vectors_by_call, trace.results_by_call = dispatcher.vectors, dispatcher.results
        return dispatcher

    @property
    def expectations(self) -> Expected:
        """The pass rates and costs of predicates, for the planner."""
        from blendfusion.run.execution.expectations import expectations
        from blendfusion.run.reports.trace import Trace

        return expectations(self.engine, lambda: self.dispatcher(Trace()))

    @cached_property
    def answer_outcomes(self) -> Outcomes:
        """The values of conditions for all answers, for the planner."""
        from blendfusion.run.execution.answer_outcomes import answer_outcomes

        return answer_outcomes()

    @property
    def budget(self) -> Budget:
        """The spending limits of this session; ``ledger`` has its spending."""
        return self.ledger.budget

    @budget.setter
    def budget(self, budget: Budget | None) -> None:
        chosen = checked_budget(budget) or Budget()
        self.ledger.budget, before = chosen, self.ledger.budget
        try:
            self.ledger.daily = self.daily_limits(chosen)
        except OptionError:
            self.ledger.budget = before
            raise

    def clear_cache(self) -> None:
        """Delete every stored answer of this session's models: its own, and those that its calls
        name.

        In a file of stored answers, this affects all sessions that share it; other models' answers
        stay.
        """
        with suppress(ModelNotFound):  # and so has no stored answers
            self.models.own(self.options)
        self.models.forget()

    def close(self) -> None:
        """Free the models, the file of stored answers and attached databases; the next question
        opens them again."""
        self.models.close()
        if self.cluster is not None:
            self.cluster.close()
        self.release()
        self._store.close()
        self.lazy_embedder.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- tables ---------------------------------------------------------------------------------

    def register_file(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
    ) -> Frame:
        """Register a file as the table ``name`` (None: called after the file), and return it.

        ``path`` is CSV, TSV, JSON, Arrow, Parquet, Lance, XLSX or a document by its extension, also
        compressed (.gz, .zst), a folder or a pattern (``logs/*.parquet``, ``2024/**/*.csv``), or a
        URL (file, http, https, s3, gs, az). Folders called ``month=01`` are columns. Files of a
        table are put together by the names of their columns. ``delimiter`` is that of CSV (None:
        found in the header), ``encoding`` that of text (None: UTF-8), ``sheet`` that of a workbook
        (None: the first one). Warns (FileWarning) of what was left out or put together. Raises
        QueryError for what cannot be read.
        """
        from blendfusion.files.reading import Reading, register_file, table_name

        chosen = table_name(os.fspath(path) if sheet is None else sheet) if name is None else name
        register_file(self, os.fspath(path), chosen, Reading(delimiter, encoding, sheet))
        return self.table(chosen)

    def register_view(self, name: str, df: DataFrame) -> None:
        """Register a frame as the view ``name``: a query over it is planned with it."""
        from blendfusion.frame import Frame
        from blendfusion.language.opaque.provenance import unnamed_tables

        super().register_view(name, df)
        self.views.hold(name, unnamed_tables(df) if isinstance(df, Frame) else ())

    def deregister_table(self, name: str) -> None:
        """Remove the table or view ``name``."""
        super().deregister_table(name)
        self.csv_texts.pop(name.strip('"'), None)
        self.views.release(name)

    # --- queries ---------------------------------------------------------------------------------

    def sql(
        self,
        query: str,
        options: SQLOptions | None = None,
        param_values: dict[str, Any] | Sequence[Any] | None = None,
        *,
        dialect: str | None = None,
        budget: Budget | None = None,
        approximate: Any = None,
        read_only: bool = False,
        **named_params: Any,
    ) -> Frame:
        """A frame of a query, which may contain calls wherever DataFusion takes a function.

        Nothing runs and no model is asked, with two exceptions: DDL and DML statements run, as in
        DataFusion, and BlendSQL reads one value of a column of texts that is called image, photo or
        picture, to see whether these are images. Raises QueryError, with the place and a remedy,
        for a query that cannot be planned. ``EXPLAIN [ANALYZE]`` returns the staged plan; ``SET
        blendfusion.option = value`` changes an option of this session.

        ``dialect`` is the name of a dialect (docs/dialects.md), or "sql" for BlendFusion's own.
        Without it, a text with ``{{…}}`` outside of quotes is BlendSQL. ``param_values`` are by
        name, or in order for ``$1``, … and for BlendSQL's ``?``. A frame of pandas, Polars, Arrow
        or DataFusion is a table of the query by its name: that of the variable of the caller that
        holds it, ``session.sql("SELECT * FROM df")``, unless a registered table has the name, or
        that of a parameter, ``session.sql("SELECT * FROM $df", df=df)``. ``budget`` limits each run
        of the frame, within the session's budget: see ``Frame.with_budget``. ``approximate``,
        such as ``bf.Within(0.02)``, takes counts, sums and averages from a sample: see
        ``Frame.approximately``. ``read_only`` is for untrusted queries: they may only read
        registered tables, and any other statement raises QueryError before it runs
        (docs/security.md); the session's option applies it to all queries.
        """
        from blendfusion.prepare.caller_tables import caller_variables
        from blendfusion.prepare.session_text import SessionText

        variables = None if read_only else caller_variables(query)
        text = SessionText(query, options, dialect, budget, read_only, variables=variables)
        frame = text.plan(self, param_values, named_params)
        return frame if approximate is None else frame.approximately(approximate)

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) - INTERNAL)

    def __repr__(self) -> str:
        from blendfusion.run.observe.progress import count_noun

        models = ", ".join(self.model_names) or "the default model, not loaded"
        tables = given_names(self.catalog().schema().names())
        shown = ", ".join(tables[:_TABLES]) + (", …" if len(tables) > _TABLES else "")
        return (
            f"Session: {models}; {count_noun(len(tables), 'table')}{': ' if shown else ''}{shown}"
        )

    def ingredient_names(self) -> set[str]:
        """The names of the session's functions that ask a model."""
        from blendfusion.prepare.function_registry import ingredients

        return set(ingredients(self))

    def change_option(self, name: str, text: str) -> Frame:
        """``SET blendfusion.name = text``: an empty frame. Raises OptionError for a wrong one."""
        self.options = options = self.options.with_text(name, text)
        self.rules_off = _rules_off(options)
        withhold_debug_logs(options)
        if name in OF_MODELS:
            self.models.reload()
        from blendfusion.models.stores.sqlite import SqliteStore

        if isinstance(self._store, SqliteStore):
            self._store.limit_mb = options.cache_size
        return self.new_table(pa.table({}))

    # --- plain execution -------------------------------------------------------------------------

    def plain_dispatcher(self) -> Dispatcher:
        """The dispatcher of calls that DataFusion evaluates: that of the current run, if there is
        one."""
        if self._answering is not None:
            return self._answering
        from blendfusion.run.reports.trace import Trace

        trace = Trace(redaction=self.options.redaction)
        trace.begin(self.options)
        return self.dispatcher(trace)

    @contextmanager
    def answering(self, dispatcher: Dispatcher) -> Iterator[None]:
        """Use ``dispatcher`` for calls that DataFusion evaluates within this context."""
        before, self._answering = self._answering, dispatcher
        try:
            yield
        finally:
            self._answering = before

    def workbench_source(self) -> Callable[[], Workbench]:
        """A function that returns the scratch context of one run, created at its first use."""
        from blendfusion.run.execution.scratch_context import Workbench

        made: list[Workbench] = []

        def workbench() -> Workbench:
            if not made:
                made.append(Workbench(self.functions, self.copied_config()))
            return made[0]

        return workbench

    # --- DataFusion's own ------------------------------------------------------------------------

    def catalog_names(self) -> set[str]:
        return super().catalog_names() - {HIDDEN_CATALOG}

    def table(self, name: str) -> Frame:
        """A frame over a registered table. Raises QueryError, naming close matches."""
        from blendfusion.datafusion.error_translation import translate_error
        from blendfusion.frame import Frame
        from blendfusion.run.hooks import Text

        self.update_tables()
        try:
            view = self.views.query(name) is not None
            origin = Text(f"SELECT * FROM {name}", None, None, {}) if view else None
            return Frame(super().table(name).df, self, origin)
        except Exception as problem:
            raise translate_error(problem, self, name, self.options.redaction) from problem

    def execute(self, plan: ExecutionPlan, partition: int) -> Any:
        """One partition of ``plan``, as a stream of batches."""
        from blendfusion.datafusion.stream import Stream

        stream = super().execute(plan, partition)
        tables = (pa.Table.from_batches([batch.to_pyarrow()]) for batch in stream)
        return Stream(pa.schema([]), tables, self.options.redaction)
