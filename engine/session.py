"""A DataFusion session with a model, a cache, ingredients and the planner."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial, update_wrapper
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, NoReturn, ParamSpec

import pyarrow as pa
from datafusion import (
    AggregateUDF,
    DataFrame,
    RuntimeEnvBuilder,
    ScalarUDF,
    SessionConfig,
    SessionContext,
    SQLOptions,
    TableFunction,
)
from datafusion.catalog import Catalog, Schema

from blendfusion.bounds import check_bounds
from blendfusion.budget import Budget, PriceList, Prices, checked_budget
from blendfusion.coercions import types_beside_columns
from blendfusion.confirm import demand
from blendfusion.dialects import OURS, by_number, planned, spoken, translation
from blendfusion.errors import ModelNotFound, OptionError, QueryError, close_matches, half_a_pair
from blendfusion.execution import STAGE_CATALOG, STAGE_SCHEMA
from blendfusion.frame import Frame
from blendfusion.handover import batches_of
from blendfusion.labelled_rows import labelled_frame, read_examples
from blendfusion.lance_table import lance_table
from blendfusion.leaves import LeafMaker
from blendfusion.measured import Measured
from blendfusion.models.cached import CachedModel
from blendfusion.models.cascade import targets_in
from blendfusion.models.embed import Embedder, Vectors
from blendfusion.models.embed_cached import CachedEmbedder, LazyEmbedder, Stored
from blendfusion.models.fallback import Models
from blendfusion.models.model import Model
from blendfusion.models.named import NamedModels
from blendfusion.models.sqlite_store import SqliteStore
from blendfusion.models.store import AnswerStore, MemoryStore
from blendfusion.option_values import option_frame, read_options
from blendfusion.options import OF_MODELS, Options
from blendfusion.origin import Text
from blendfusion.parameters import spelled_parameters
from blendfusion.planner.rules import COMPARISON_STOP, rules_off
from blendfusion.planner.rules.similar_first import Pays, always
from blendfusion.planner.searches import SEARCHES, Mode
from blendfusion.prepass import Typed, typed
from blendfusion.problems import understood
from blendfusion.processes import check_process, no_pickle, this_process
from blendfusion.pump import Pump
from blendfusion.read_only import READING, check_plan, check_text
from blendfusion.search.build import IndexReport
from blendfusion.search.indexes import Indexes
from blendfusion.search.indexing import default_path, make_index, require_lance
from blendfusion.search.snapshot import RANK
from blendfusion.search.sources import searched, table_of
from blendfusion.search.tables import SearchTables
from blendfusion.statements import (
    LIST_TABLES,
    Explain,
    Setting,
    after_explain,
    creates,
    creates_table,
    shows_tables,
    statement,
)
from blendfusion.trace import Trace
from blendfusion.types import Constraint, Task
from blendfusion.udfs.asker import Asker, with_options
from blendfusion.udfs.call import Call, readable
from blendfusion.udfs.define import known_ingredients
from blendfusion.udfs.functions import AskerSource, scalar_function
from blendfusion.udfs.ingredient import Ingredient
from blendfusion.udfs.ledger import Ledger
from blendfusion.udfs.open_during import open_during_function
from blendfusion.udfs.serving import Serve, directly
from blendfusion.unnest import unnested
from blendfusion.views import Views
from blendfusion.workbench import Workbench

P = ParamSpec("P")


def _source(
    inherited: Callable[Concatenate[SessionContext, P], DataFrame],
) -> Callable[Concatenate[Session, P], Frame]:
    """A method of SessionContext that builds a DataFrame, building a Frame."""

    def source(self: Session, /, *args: P.args, **kwargs: P.kwargs) -> Frame:
        try:
            made = inherited(self, *args, **kwargs)
        except UnicodeEncodeError as problem:
            raise half_a_pair(problem) from problem
        return made if isinstance(made, Frame) else Frame(made.df, self)

    return update_wrapper(source, inherited)


def _no_copy(inherited: Callable[P, SessionContext]) -> Callable[P, NoReturn]:
    """A method of SessionContext that makes another context of one: it would have no model."""

    def refused(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        raise OptionError(
            f"session.{inherited.__name__} would make a context without the session's model",
            hint="Call it on a plain datafusion.SessionContext, and bf.register(context) after that.",
        )

    return update_wrapper(refused, inherited)


def plain_asker(session: Session) -> AskerSource:
    """Who answers where DataFusion evaluates a call of the session's. DataFusion holds this, where
    Python's garbage collector does not look: it must not hold the session."""
    held = weakref.ref(session)

    def asker() -> Asker:
        session = held()
        if session is None:
            raise QueryError(
                "the session of this plan is gone",
                hint="Keep a reference to it as long as its plans.",
            )
        return session.plain_asker()

    return asker


def _held_by(indexes: Indexes) -> Stored:
    """The vectors of a session's indexes, for its embedder: they hold it, so it must not hold them."""
    held = weakref.ref(indexes)

    def stored(fingerprint: str, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        found = held()
        return {} if found is None else found.vectors(fingerprint, keys)

    return stored


class Session(SessionContext):
    """A ``datafusion.SessionContext`` whose SQL and frames may ask a model.

    All of DataFusion's registration functions work; ``sql`` and ``table`` return frames. Settings
    and answers belong to the session. A context manager: ``close`` frees the model, as does dropping
    the session and its frames. It belongs to its process: ProcessError where it is forked or pickled.
    """

    def __init__(
        self,
        model: Models = None,
        options: Options | None = None,
        config: SessionConfig | None = None,
        runtime: RuntimeEnvBuilder | None = None,
        store: AnswerStore | None = None,
        budget: Budget | None = None,
        prices: PriceList = None,
        embedder: str | Embedder | None = "auto",
    ) -> None:
        self._process = this_process()
        super().__init__(config, runtime)
        self.options = options or Options()
        self.rules_off = rules_off(self.options)
        self.ledger = Ledger(budget, Prices(prices))
        """What this session's model was asked so far, and may be asked yet."""
        self._store: AnswerStore = MemoryStore() if store is None else store
        self.models = NamedModels(model, self._store)
        """The session's own models, and those that calls name."""
        self.measured = Measured()
        # A model that was named is looked up at once, so that a typing error shows here; the
        # packaged one only when it is needed, so that plain SQL works without any.
        if model is not None and model != "auto":
            self.models.own(self.options)
        self._functions: list[ScalarUDF] = []
        self._own_names: set[str] = set()
        self._table_functions: set[str] = set()
        self._registered: set[str] = set()
        self._option_frames: dict[str, Frame] = {}
        self._labelled_frames: dict[Task, Frame] = {}
        self.enums: dict[str, set[str]] = {}
        """The columns that SUQL compares by meaning, by table."""
        self._answering: Asker | None = None
        hidden = Catalog.memory_catalog()
        SessionContext.register_catalog_provider(self, STAGE_CATALOG, hidden)
        hidden.register_schema(STAGE_SCHEMA, Schema.memory_schema())
        self.leaf_maker = LeafMaker()
        self.views = Views()
        self._lazy_embedder = LazyEmbedder(embedder, self.options)
        self.indexes = Indexes(self._lazy_embedder)
        self._lazy_embedder.stored = _held_by(self.indexes)
        hidden.register_schema(SEARCHES, SearchTables(self.indexes))
        for name, schema in self.leaf_maker.schemas().items():
            hidden.register_schema(name, schema)
        self.register_udf(open_during_function())

    @property
    def ctx(self) -> Any:
        """DataFusion's own context, through which everything goes. Raises ProcessError in a fork."""
        self.check_process()
        return self._ctx

    @ctx.setter
    def ctx(self, ctx: Any) -> None:
        self._ctx = ctx

    def check_process(self) -> None:
        """Raise ProcessError in a fork of the process in which this was opened."""
        check_process(self._process)

    def __reduce__(self) -> NoReturn:
        no_pickle("session")

    # --- the model -------------------------------------------------------------------------------

    @property
    def model(self) -> CachedModel:
        """The session's model, behind the session's answer cache. Raises ModelNotFound."""
        return self.models.own(self.options)

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models that were named, in the order in which they are asked; () for the default one, as
        long as nothing was asked."""
        return self.models.own_names

    def register_model(self, name: str, model: str | Model) -> None:
        """Let calls name ``model``, as ``bf.connect`` takes it: ``llm_filter('…', x, model => 'large')``.

        The session's own models may be named without, by what was given to ``bf.connect``, and packaged
        ones: 'smollm2', 'gemma'. Raises ModelNotFound for a model that cannot be had.
        """
        self.models.register(name, model, self.options)

    def asker(self, trace: Trace, budget: Budget | None = None) -> Asker:
        """What puts the requests of one run to the model, as far as ``budget`` and the session's go."""
        trace.ledger = ledger = self.ledger.for_query(budget)
        trace.first_model = lambda: self.model.name
        options = self.options
        asker = Asker(
            lambda: self.model,
            trace,
            options.on_error,
            options.redaction,
            ledger,
            self._lazy_embedder,
            image_urls=options.image_urls,
            targets=targets_in(options),
            named=lambda names: self.models.of(names, options),
        )
        trace.vectors_by_call = asker.vectors
        return asker

    @property
    def budget(self) -> Budget:
        """What this session may spend in its life; what it has spent is in ``ledger``."""
        return self.ledger.budget

    @budget.setter
    def budget(self, budget: Budget | None) -> None:
        self.ledger.budget = checked_budget(budget) or Budget()

    def clear_cache(self) -> None:
        """Forget every answer of this session's models: its own, and those that its calls name.

        In a file of stored answers too, for all sessions that share it; other models' answers stay.
        """
        with suppress(ModelNotFound):  # which then has answered nothing
            self.models.own(self.options)
        self.models.forget()

    def close(self) -> None:
        """Free the models and the file of stored answers. May be called twice; the next question
        loads them again."""
        self.models.close()
        self._store.close()
        self._lazy_embedder.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- search ----------------------------------------------------------------------------------

    @property
    def similar_first_pays(self) -> Pays:
        """Where the rule ``similar_first`` puts rows in order."""
        return always if self.options.similar_first is True else self.indexes.serve

    def remembered_vectors(self) -> Embedder:
        """Gives the vectors that ``embedder`` remembers, and embeds nothing."""
        return self._lazy_embedder.remembered()

    def register_lance(self, name: str, path: str | os.PathLike[str]) -> None:
        """Let ``name`` stand for the Lance (or LanceDB) table in the folder ``path``.

        Columns and filters go into Lance's own scan; every query reads the latest version. Raises
        QueryError if there is none, ModelNotFound without the extra 'search'.
        """
        super().register_table(name, lance_table(path))

    @property
    def embedder(self) -> CachedEmbedder:
        """What gives texts vectors; it remembers the latest ones. Raises ModelNotFound."""
        return self._lazy_embedder()

    def index(
        self,
        name: str,
        source: object = None,
        *,
        columns: str | Sequence[str] | None = None,
        path: str | os.PathLike[str] | None = None,
        language: str | None = "English",
        vectors: bool = True,
    ) -> IndexReport:
        """Build or update the index ``name`` over a table, for ``llm_search``: see docs/search.md.

        ``source`` is the table: its name (None: that of the index), a frame, or an Arrow table.
        ``columns`` are those that are searched (None: all of text). ``path`` is a folder for the index
        alone (None: one in the user's cache folder). ``language`` is that of the texts, for the stems of
        words and the words that do not count (None: neither). ``vectors=False`` leaves out embeddings.

        Only new rows are embedded, and rows that are gone vanish; until all is done searches see what
        they saw before. Raises QueryError for a table or columns that are not there, ModelNotFound
        without the extra 'search'.
        """
        place = default_path(name) if path is None else Path(path).expanduser()
        embedder = self.embedder if vectors else None
        report = make_index(self, name, source, columns, place, language, embedder)
        self.indexes.open(name, place)
        return report

    def open_index(self, name: str, path: str | os.PathLike[str] | None = None) -> None:
        """Search the index in ``path``, which some session has built, as ``name``. Raises QueryError if
        there is none."""
        require_lance()
        place = default_path(name) if path is None else Path(path).expanduser()
        self.indexes.open(name, place)

    def search(
        self,
        name: str,
        query: str,
        k: int = 5,
        *,
        mode: Mode | None = None,
        where: str | None = None,
    ) -> Frame:
        """The best ``k`` rows of the index ``name`` for ``query``, best first, with ``_score`` (the
        higher the better) and ``_rank`` (from 1).

        ``mode`` is 'text' (BM25), 'vector', or 'hybrid', the default for an index with vectors.
        ``where`` is SQL over the index's columns: only rows that meet it are looked at, while
        ``filter`` on the frame drops rows among the best ``k``. Nothing is searched before the frame runs.
        """
        search = self.indexes.checked(name, query, k, mode, where)
        return self.table(table_of(search)).sort(RANK)

    # --- queries ---------------------------------------------------------------------------------

    def sql(
        self,
        query: str,
        options: SQLOptions | None = None,
        param_values: dict[str, Any] | Sequence[Any] | None = None,
        *,
        dialect: str | None = None,
        budget: Budget | None = None,
        read_only: bool = False,
        **named_params: Any,
    ) -> Frame:
        """A frame of a query, which may call ingredients anywhere DataFusion takes a function.

        Nothing runs (DDL and DML statements excepted, as in DataFusion) and no model is asked.
        Raises QueryError, with the place and a remedy, for a query that cannot be planned.
        ``EXPLAIN [ANALYZE]`` gives the staged plan; ``SET blendfusion.option = value`` changes
        an option of this session. ``dialect`` is "blendsql", "suql" or "sql", ours; without it a text
        with ``{{…}}`` outside of quotes is BlendSQL (docs/dialects.md). ``param_values`` are by name,
        or in order: those of ``$1``, … and of BlendSQL's ``?``. ``budget`` is what each run of the frame may spend on models,
        within the session's: see ``Frame.with_budget``. ``read_only`` is for queries that you did
        not write: they may read registered tables, and anything else raises QueryError before it
        happens (docs/security.md); the session's option says it for all.
        """
        words = spoken(query, dialect)
        ordered = None if isinstance(param_values, Mapping) else param_values
        if ordered is not None and words != "blendsql":
            param_values, ordered = by_number(ordered), None
        by_name = param_values if isinstance(param_values, dict) else None
        if words != OURS:

            def run(text: str, words: str) -> Frame:
                limits: Any = {"budget": budget, "read_only": read_only}
                return self.sql(text, options, by_name, dialect=words, **limits, **named_params)

            return planned(self, query, words, run, ordered)
        budget = checked_budget(budget)
        read_only = read_only or self.options.read_only
        if read_only:
            inserted = (str(v) for v in named_params.values() if not isinstance(v, DataFrame))
            check_text(query, self._table_functions, inserted)
            options = READING
        said = statement(query)
        if isinstance(said, Setting):
            return self._set(said)
        if shows_tables(query):
            query = LIST_TABLES
        if isinstance(said, Explain):
            inner = self._planned(said.query, options, by_name, named_params, budget)
            if inner.prepared.calls:
                text = inner.explain_text(analyze=said.analyze, verbose=said.verbose)
                frame = self.plain_frame(pa.table({"plan": text.splitlines()}))
                return Frame(frame.df, self)
        return self._planned(query, options, by_name, named_params, budget)

    def _planned(
        self,
        query: str,
        options: SQLOptions | None,
        param_values: dict[str, Any] | None,
        named_params: dict[str, Any],
        budget: Budget | None,
    ) -> Frame:
        parameters = spelled_parameters(param_values, named_params)

        def plan(ready: Typed) -> Frame:
            columns = partial(self._columns, options)
            head, text = after_explain(ready.sql)
            text = head + unnested(searched(text, self, parameters, columns), columns)
            try:
                with self._creating(query, ready.calls, budget) as carried_out:
                    planned = carried_out(
                        lambda: super(Session, self).sql(
                            text, options, param_values, **named_params
                        )
                    )
            except Exception as problem:
                raise understood(problem, self, query) from problem
            if options is READING:
                check_plan(planned.logical_plan())
            self.views.note(text)
            origin = Text(text, options, param_values, named_params, query)
            return Frame(planned.df, self, origin, budget)

        ready = self.typed(query, parameters, whole=True)
        frame = plan(ready)
        # What creates something has done so by now.
        if ready.beside_columns and not creates(query):
            types = types_beside_columns(frame, ready.beside_columns)
            if types:
                ready = self.typed(query, parameters, whole=True, types=types)
                frame = plan(ready)
        return self.named(frame, ready.written)

    def _columns(self, options: SQLOptions | None, common: str, relation: str) -> list[str] | None:
        """The columns of a relation of a query; None if DataFusion cannot tell by itself."""
        try:
            schema = super().sql(f"{common}SELECT * FROM {relation}", options).schema()
        except Exception:  # whatever is wrong with it shows when the query is planned
            return None
        return list(schema.names)

    @contextmanager
    def _creating(
        self, query: str, calls: Sequence[Call], budget: Budget | None
    ) -> Iterator[Serve]:
        """What carries out a statement: CREATE TABLE … AS runs while DataFusion plans it, and its
        calls are answered as in any run."""
        if not calls or not creates_table(query):
            yield directly
            return
        trace = Trace(redaction=self.options.redaction)
        if self.options.confirm_above:
            known = "How many values CREATE TABLE … AS asks is not known before it runs."
            demand(known, self.options.confirm_above)
        asker, pump = self.asker(trace, budget), Pump()
        try:
            with trace.begin(self, query, len(calls)), self.answering(asker):
                self.settle(calls, asker)
                with asker.served_by(pump.serve):
                    yield pump.call
        except Exception:
            if asker.error is not None:
                raise asker.error from None
            raise
        trace.warn(asker.outages)

    def typed(
        self,
        query: str,
        parameters: Mapping[str, str] | None = None,
        *,
        whole: bool = False,
        types: Mapping[str, Constraint] | None = None,
    ) -> Typed:
        """The query with its calls as functions, which are known to DataFusion from here on.

        ``whole``: it is no part of a larger one. ``types``: see ``prepass.typed``.
        """
        check_bounds(query)
        whole = whole and COMPARISON_STOP not in self.rules_off
        ready = typed(query, self._ingredients(), parameters, whole=whole, types=types)
        for call in ready.calls:
            self._register(call)
            if call.models:
                self.models.of(call.asked_of(targets_in(self.options)), self.options)
            if call.options_query is not None:
                self._option_frames[call.options_query] = option_frame(self, call.options_query)
            if call.task.examples_query is not None:
                self._labelled_frames[call.task] = self.labelled_frame(call.task)
        return ready

    def settle(self, calls: Iterable[Call], asker: Asker) -> None:
        """Read the options and examples that subqueries give to ``calls``; what those ask, ``asker``
        answers."""
        for call in calls:
            task, options, examples = call.task, call.options_query, call.task.examples_query
            if (options is None and examples is None) or asker.is_settled(task):
                continue
            if options is not None:
                found = read_options(self.option_frame(options), options, asker)
                task = with_options(task, found)
            if examples is not None:
                picked = read_examples(self.labelled_frame(call.task), examples, task, asker)
                task = replace(task, examples=picked, examples_query=None)
            asker.settle(call.task, task)

    def labelled_frame(self, task: Task) -> Frame:
        """The rows of which some become the examples of ``task``: see ``labelled_rows.labelled_frame``."""
        known = self._labelled_frames.get(task)
        return known or labelled_frame(self, task.examples_query or "", task)

    def option_frame(self, query: str) -> Frame:
        """The options that the subquery of a call gives: see ``option_values.option_frame``."""
        return self._option_frames.get(query) or option_frame(self, query)

    def translated(
        self, query: str, dialect: str | None = None, param_values: Sequence[Any] | None = None
    ) -> str:
        """``query`` in our SQL, as ``sql`` reads it: see docs/dialects.md. Nothing runs."""
        words = spoken(query, dialect)
        if words == OURS:
            return query

        def run(text: str, words: str) -> Frame:
            return self.sql(text, dialect=words)

        return translation(self, query, words, run, param_values).sql

    def ingredient_names(self) -> set[str]:
        """The names of the functions that ask a model, as queries call them."""
        return set(self._ingredients())

    def register_enum(self, table: str, *columns: str) -> None:
        """Have SUQL compare ``columns`` of ``table`` by meaning: ``'coffee' = ANY(cuisines)`` is true of
        {cafe} and {coffee & tea}. See ``llm_members``; raises QueryError for a column that is none.
        """
        known = self.table(table).schema().names
        for column in columns:
            if column not in known:
                hint = close_matches(column, known)
                raise QueryError(f"unknown column '{column}' of '{table}'", hint=hint)
        self.enums.setdefault(table, set()).update(columns)

    def _ingredients(self) -> dict[str, Ingredient]:
        """The ingredients by name; a function that the user registered here goes before them."""
        return {n: i for n, i in known_ingredients().items() if n not in self._own_names}

    def named(self, frame: Frame, written: Mapping[str, tuple[str, ...]]) -> Frame:
        """The frame with the columns of unnamed calls called as the user wrote them."""
        try:
            names = frame.schema().names
        except pa.ArrowException as problem:
            hint = "Give each column of the result a name without NUL: … AS name."
            raise QueryError(f"a column has no valid name: {problem}", hint=hint) from problem
        ways = {name: list(texts) for name, texts in written.items()}
        new = []
        for name in names:
            said = readable(name, {call: texts[0] for call, texts in ways.items()})
            new.append(said.replace("\0", "\\0"))  # Arrow has no names with NUL
            for call, texts in ways.items():
                if call in name and len(texts) > 1:
                    del texts[0]  # the same call with another FILTER or ORDER BY comes next
        if new == names:
            return frame
        # A rename leaves the others as they are: two columns may share a name.
        for old, n in zip(names, new, strict=True):
            if old != n:
                quoted = old.replace('"', '""')
                frame = frame.with_column_renamed(f'"{quoted}"', n)
        return frame

    def _set(self, setting: Setting) -> Frame:
        options = self.options.with_text(setting.name, setting.value)
        self.rules_off = rules_off(options)
        self.options = options
        if setting.name in OF_MODELS:
            self.models.reload()
        if isinstance(self._store, SqliteStore):
            self._store.limit_mb = options.cache_size
        return Frame(self.plain_frame(pa.table({})).df, self)

    def _register(self, call: Call) -> None:
        """Make the function that stands for ``call`` known to DataFusion."""
        if call.name in self._registered:
            return
        SessionContext.register_udf(self, scalar_function(call, plain_asker(self)))
        self._registered.add(call.name)

    # --- plain execution -------------------------------------------------------------------------

    def plain_asker(self) -> Asker:
        """Who answers where DataFusion evaluates a call itself: the current run, if there is one."""
        if self._answering is not None:
            return self._answering
        trace = Trace(redaction=self.options.redaction)
        trace.begin(self)
        return self.asker(trace)

    @contextmanager
    def answering(self, asker: Asker) -> Iterator[None]:
        """Answer calls that DataFusion evaluates by ``asker`` meanwhile."""
        before, self._answering = self._answering, asker
        try:
            yield
        finally:
            self._answering = before

    def workbench_source(self) -> Callable[[], Workbench]:
        """A workbench for one run, made when it is first needed."""
        made: list[Workbench] = []

        def workbench() -> Workbench:
            if not made:
                made.append(Workbench(self._functions))
            return made[0]

        return workbench

    def plain_frame(self, table: pa.Table) -> DataFrame:
        """A DataFusion frame over ``table``."""
        return SessionContext.read_batches(self, batches_of(table))

    # --- DataFusion's own ------------------------------------------------------------------------

    def register_udf(self, udf: ScalarUDF) -> None:
        super().register_udf(udf)
        self._functions.append(udf)
        self._own_names.add(udf.name)

    def register_udaf(self, udaf: AggregateUDF) -> None:
        super().register_udaf(udaf)
        self._own_names.add(udaf.name)

    def register_udtf(self, func: TableFunction) -> None:
        super().register_udtf(func)
        # A table function tells its name only so.
        self._table_functions.add(repr(func._udtf).partition("(")[2].removesuffix(")"))

    def enable_url_table(self) -> SessionContext:
        """Not possible: a session reads tables that were registered, never a path in a query."""
        raise OptionError(
            "a session cannot read files by their paths in a query",
            hint="Register the file: session.register_csv('name', path), register_parquet, …",
        )

    with_extensions = _no_copy(SessionContext.with_extensions)
    with_python_udf_inlining = _no_copy(SessionContext.with_python_udf_inlining)
    with_logical_extension_codec = _no_copy(SessionContext.with_logical_extension_codec)
    with_physical_extension_codec = _no_copy(SessionContext.with_physical_extension_codec)

    def catalog_names(self) -> set[str]:
        return super().catalog_names() - {STAGE_CATALOG}

    def table(self, name: str) -> Frame:
        """A frame over a registered table. Raises QueryError, naming close matches."""
        try:
            view = self.views.query(name) is not None
            origin = Text(f"SELECT * FROM {name}", None, None, {}) if view else None
            return Frame(super().table(name).df, self, origin)
        except Exception as problem:
            raise understood(problem, self, name) from problem

    sql_with_options = _source(SessionContext.sql_with_options)  # type: ignore[arg-type]
    execute_logical_plan = _source(SessionContext.execute_logical_plan)
    create_dataframe = _source(SessionContext.create_dataframe)
    create_dataframe_from_logical_plan = _source(SessionContext.create_dataframe_from_logical_plan)
    from_pylist = _source(SessionContext.from_pylist)
    from_pydict = _source(SessionContext.from_pydict)
    from_arrow = _source(SessionContext.from_arrow)
    from_pandas = _source(SessionContext.from_pandas)
    from_polars = _source(SessionContext.from_polars)
    read_batch = _source(SessionContext.read_batch)
    read_batches = _source(SessionContext.read_batches)
    read_json = _source(SessionContext.read_json)
    read_csv = _source(SessionContext.read_csv)
    read_parquet = _source(SessionContext.read_parquet)
    read_avro = _source(SessionContext.read_avro)
    read_arrow = _source(SessionContext.read_arrow)
    read_empty = _source(SessionContext.read_empty)
    read_table = _source(SessionContext.read_table)
    empty_table = _source(SessionContext.empty_table)
