"""A DataFusion session with a model, a cache, ingredients and the planner."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

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
from blendfusion.run.engine import Plans, Runs, Texts
from blendfusion.services import missing_method, parts, services
from blendfusion.services.session_methods import SessionMethods
from blendfusion.udfs.ask.ledger import Ledger
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
    from blendfusion.run.reports.trace import Trace

INTERNAL = frozenset(
    "answer_outcomes as_frame as_run attached calls change_option check_process configured copied_config csv_texts "
    "documents "
    "elsewhere enums expectations file_tables files_of functions has_last information ingredient_names is_in_memory kept_views lance_place model_columns registered_tables version_of "
    "lazy_embedder leaf_maker new_frame new_table new_unnamed own_names places_of plain_frame "
    "plain_trace plans pooled query_files reads_paths runs similar_first_pays small_rows "
    "add_hidden_schema engine foreign_table note_registration renew_tables registration_of scan_notes table_functions telling texts time_zone update_tables views workbench_source".split()
)
"""The names of a session for other modules of the package; completion and the reference omit
them."""
_TABLES = 20
"""The tables that the display of a session names."""


def _rules_off(options: Options) -> tuple[str, ...]:
    """The rules that ``options`` or missing services switch off. Raises OptionError for unknown and
    required rules."""
    has_groups = any(service.decided_groups for service in services().values())
    missing = () if has_groups else ("undecided_groups",)
    if not options.rules_off and options.similar_first is not False:
        return missing
    from blendfusion.planner.rules import rules_off

    return (*rules_off(options), *missing)


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
        withhold_debug_logs(options)
        self.ledger = ledger
        """The session's spending so far, and its limits."""
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
        hooks: Self = weakref.proxy(self)
        self.texts = Texts(hooks)
        self.plans = Plans(hooks, _rules_off(options))
        self.runs = Runs(hooks, self.models, self.lazy_embedder, ledger)
        self._hidden = Catalog.memory_catalog()
        SessionContext.register_catalog_provider(self, HIDDEN_CATALOG, self._hidden)
        self.add_hidden_schema(STAGE_SCHEMA, Schema.memory_schema())
        self.add_hidden_schema(UNNAMED_SCHEMA, Schema.memory_schema())
        for make in (*parts("function"), parse_money_function):
            self.register_udf(make())

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

    def register_model(self, name: str, model: str | Model) -> None:
        """Register ``model`` under ``name`` for calls: ``llm_filter('…', x, model => 'large')``.

        ``model`` is any value that ``bf.connect`` takes. The session's own models, by the text
        passed to ``bf.connect``, and the packaged models 'smollm2' and 'gemma' need no
        registration. Raises ModelNotFound for an unavailable model.
        """
        self.models.register(name, model, self.options)

    @property
    def expectations(self) -> Expected:
        """The pass rates and costs of predicates, for the planner."""
        from blendfusion.run.execution.expectations import expectations
        from blendfusion.run.reports.trace import Trace

        runs = self.runs
        return expectations(self.table, lambda: runs.dispatcher(Trace()), self.workbench_source())

    @cached_property
    def answer_outcomes(self) -> Outcomes:
        """The values of conditions for all answers, for the planner."""
        from blendfusion.run.execution.answer_outcomes import answer_outcomes

        return answer_outcomes()

    def plain_trace(self) -> Trace:
        """A trace, begun, of calls that DataFusion evaluates outside of runs."""
        from blendfusion.run.reports.trace import Trace

        trace = Trace(redaction=self.options.redaction)
        trace.begin(self.options)
        return trace

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
        name, or in order for ``$1``, … and for BlendSQL's ``?``. A text that is passed by keyword
        replaces ``$name`` as SQL, as in DataFusion: pass values as ``param_values``. A frame of
        pandas, Polars, Arrow or DataFusion is a table of the query by its name: that of the
        variable of the caller that holds it, ``session.sql("SELECT * FROM df")``, unless a
        registered table has the name, or that of a parameter, ``session.sql("SELECT * FROM $df",
        df=df)``. ``budget`` limits each run of the frame, within the session's budget: see
        ``Frame.with_budget``. ``approximate``, such as ``bf.Within(0.02)``, takes counts, sums and
        averages from a sample: see ``Frame.approximately``. ``read_only`` is for untrusted
        queries: they may only read registered tables, and any other statement raises QueryError
        before it runs (docs/security.md); the session's option applies it to all queries.
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
        self.plans.rules_off = _rules_off(options)
        withhold_debug_logs(options)
        if name in OF_MODELS:
            self.models.reload()
        from blendfusion.models.stores.sqlite import SqliteStore

        if isinstance(self._store, SqliteStore):
            self._store.limit_mb = options.cache_size
        return self.new_table(pa.table({}))

    def workbench_source(self) -> Callable[[], Workbench]:
        """A function that returns the scratch context of one run, created at its first use."""
        from blendfusion.run.execution.scratch_context import Workbench

        return cache(lambda: Workbench(self.functions, self.copied_config()))

    # --- DataFusion's own ------------------------------------------------------------------------

    def catalog_names(self) -> set[str]:
        return super().catalog_names() - {HIDDEN_CATALOG}

    def table(self, name: str) -> Frame:
        """A frame over a registered table. Raises QueryError, naming close matches."""
        from blendfusion.datafusion.error_translation import translate_error
        from blendfusion.frame import Frame
        from blendfusion.run.hooks import Text

        self.update_tables(name)
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
