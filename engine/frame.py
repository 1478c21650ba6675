"""A DataFrame whose methods return frames and whose results come from the planner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from functools import cached_property, partial, update_wrapper
from io import StringIO
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NoReturn,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
)

import pyarrow as pa
from datafusion import DataFrame, Expr, SessionContext, lit
from datafusion import functions as f
from datafusion.catalog import Table
from datafusion.plan import ExecutionPlan
from datafusion.record_batch import RecordBatch

from blendfusion.budget import Budget, checked_budget, lowest
from blendfusion.datafusion.arrow_layouts import concat
from blendfusion.datafusion.background import in_background
from blendfusion.datafusion.error_gate import is_foreign, running
from blendfusion.datafusion.error_translation import functions_in
from blendfusion.datafusion.foreign_words import without_filters
from blendfusion.datafusion.interruptible import Pump
from blendfusion.datafusion.method_gate import gate_errors
from blendfusion.datafusion.planned_types import planned_schema
from blendfusion.datafusion.process_guard import no_pickle
from blendfusion.datafusion.sort_keys import is_row_change
from blendfusion.datafusion.stream import Stream
from blendfusion.datafusion.unnamed_tables import UnnamedTable
from blendfusion.errors import BlendFusionError, OptionError, QueryError, require_package
from blendfusion.files.csv_lines import place_error
from blendfusion.files.foreign_tables import pandas_of, polars_of
from blendfusion.files.python_values import convert
from blendfusion.language.opaque.datafusion_bugs import without_bugs
from blendfusion.language.opaque.execution_path import optimize, prepare, understood_error
from blendfusion.language.opaque.prepared_frame import PreparedFrame
from blendfusion.language.opaque.provenance import (
    parameter_texts,
    place_error_in,
    unnamed_tables,
    unread_parts,
    written_sql,
)
from blendfusion.language.query_text.text_rules import EXPRESSIONS, rewrite
from blendfusion.prepare.result_names import name_columns
from blendfusion.prepare.verbs.hints import missing
from blendfusion.prepare.verbs.media_values import with_names_of_media
from blendfusion.prepare.verbs.methods import writer
from blendfusion.prepare.verbs.names import apply, expression, found_names
from blendfusion.prepare.verbs.placement import in_place_of
from blendfusion.redaction import WITHHELD, printable
from blendfusion.run.hooks import BaseSession, Latest, Origin, Verb
from blendfusion.services import missing_method, parts
from blendfusion.services.frame_methods import FrameMethods
from blendfusion.udfs.declare.call_registry import readable

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from datafusion import DataFrameWriteOptions

    from blendfusion.run.engine import Engine
    from blendfusion.run.execution.pipeline import Counts
    from blendfusion.run.reports.estimate import Estimate
    from blendfusion.run.reports.trace import Trace
    from blendfusion.udfs.ask.dispatcher import Dispatcher


P = ParamSpec("P")
T = TypeVar("T")
JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]


def verb(
    inherited: Callable[Concatenate[DataFrame, P], DataFrame],
) -> Callable[Concatenate[Frame, P], Frame]:
    """Wraps a method of DataFrame that builds another, so that it builds a Frame."""

    def build(self: Frame, /, *args: P.args, **kwargs: P.kwargs) -> Frame:
        return self._next(inherited, *args, **kwargs)

    return update_wrapper(build, inherited)


def _place(frame: Frame, error: BaseException) -> None:
    """Gives an error its place: in the text of the query, or in a CSV file."""
    place_error(error, frame.session.csv_texts.values())
    place_error_in(frame, error)


@gate_errors(lambda frame: frame.session.options.redaction, _place)
class Frame(FrameMethods):
    """A DataFusion DataFrame in a BlendFusion session.

    Building a frame asks no model. Every method that returns data runs the staged plan; afterwards
    ``trace`` has the questions and the spending.
    """

    def __init__(
        self, df: Any, session: BaseSession, origin: Origin = None, budget: Budget | None = None
    ) -> None:
        self._session = session
        super().__init__(df)
        self.origin = origin
        self.budget = budget
        """The spending limits of each run, within the session's budget; None: no limit."""
        self.within: object | None = None
        """How far estimates may be from the results of all answers; None: as the session says."""
        self.unnamed_table: UnnamedTable | None = None
        """The table that this frame reads, if it has no name of its own."""
        self.latest = Latest()
        """The latest run of this frame."""
        self.source: Frame | None = None
        """The query of an INSERT, COPY, UPDATE or DELETE, which runs first; None for another
        frame."""
        self.statement: Callable[[pa.Table], Frame] | None = None
        """The frame of the statement over the rows of ``source``."""
        self.renewed: Callable[[], Frame | None] | None = None
        """The query for a run, if what it reads has changed since it was planned."""

    @property
    def df(self) -> Any:
        """DataFusion's own frame. Raises ProcessError in a fork of the session's process."""
        self._session.check_process()
        return self._df

    @df.setter
    def df(self, df: Any) -> None:
        self._df = df

    def __reduce__(self) -> NoReturn:
        no_pickle("frame")

    # --- verbs -----------------------------------------------------------------------------------

    @in_place_of(verb(DataFrame.alias))
    def alias(self) -> None: ...

    @in_place_of(verb(DataFrame.select))
    def select(self) -> None: ...

    @in_place_of(verb(DataFrame.drop))
    def drop(self) -> None: ...

    @in_place_of(verb(DataFrame.window))
    def window(self) -> None: ...

    @in_place_of(verb(DataFrame.with_column))
    def with_column(self) -> None: ...

    @in_place_of(verb(DataFrame.with_columns))  # type: ignore[arg-type]
    def with_columns(self) -> None: ...

    @in_place_of(verb(DataFrame.with_column_renamed))
    def with_column_renamed(self) -> None: ...

    @in_place_of(verb(DataFrame.aggregate))
    def aggregate(self) -> None: ...

    @in_place_of(verb(DataFrame.sort))
    def sort(self) -> None: ...

    @in_place_of(verb(DataFrame.sort_by))
    def sort_by(self) -> None: ...

    @in_place_of(verb(DataFrame.cast))
    def cast(self) -> None: ...

    @in_place_of(verb(DataFrame.limit))
    def limit(self) -> None: ...

    @in_place_of(verb(DataFrame.head))
    def head(self) -> None: ...

    @in_place_of(verb(DataFrame.distinct))
    def distinct(self) -> None: ...

    @in_place_of(verb(DataFrame.distinct_on))
    def distinct_on(self) -> None: ...

    @in_place_of(verb(DataFrame.join))  # type: ignore[arg-type]
    def join(self) -> None: ...

    @in_place_of(verb(DataFrame.join_on))
    def join_on(self) -> None: ...

    @in_place_of(verb(DataFrame.repartition))
    def repartition(self) -> None: ...

    @in_place_of(verb(DataFrame.repartition_by_hash))
    def repartition_by_hash(self) -> None: ...

    @in_place_of(verb(DataFrame.union))
    def union(self) -> None: ...

    @in_place_of(verb(DataFrame.union_distinct))
    def union_distinct(self) -> None: ...

    @in_place_of(verb(DataFrame.union_by_name))
    def union_by_name(self) -> None: ...

    @in_place_of(verb(DataFrame.intersect))
    def intersect(self) -> None: ...

    @in_place_of(verb(DataFrame.except_all))
    def except_all(self) -> None: ...

    @in_place_of(verb(DataFrame.unnest_columns))
    def unnest_columns(self) -> None: ...

    @in_place_of(verb(DataFrame.fill_null))
    def fill_null(self) -> None: ...

    @in_place_of(verb(DataFrame.fill_nan))
    def fill_nan(self) -> None: ...

    @in_place_of(verb(DataFrame.__getitem__))
    def __getitem__(self) -> None: ...

    def find_qualified_columns(self, *names: str) -> list[Expr]:
        """The columns of these names, with their relations."""
        return DataFrame.find_qualified_columns(self, *found_names(self, names))

    def filter(self, *predicates: Expr | str) -> Frame:
        """The rows where every predicate is true; a text is SQL and may contain calls."""
        parsed = (
            self._parse(p, "SELECT 1 WHERE ") if isinstance(p, str) else p for p in predicates
        )
        return self._next(DataFrame.filter, *parsed)

    def llm_join(
        self,
        right: Frame,
        left_on: str,
        right_on: str,
        *,
        join_type: JoinType = "inner",
        **options: Any,
    ) -> Frame:
        """This frame joined with ``right`` where a value of the column ``left_on`` matches one of
        ``right_on``. ``join_type`` is the kind of the join; ``options`` are those of
        ``bf.llm_join``: ``how`` defines a match in words."""
        from blendfusion.udfs.register.python_functions import llm_join

        how = options.get("how")
        if how in get_args(JoinType):
            raise QueryError(
                f"llm_join: how={how!r} is a kind of join, not the definition of a match",
                hint=f"Write join_type={how!r}.",
            )
        try:
            sides = self.col(left_on), right.col(right_on)
            condition = llm_join(*sides, **options)
            return self.join_on(right, condition, how=join_type)
        except BlendFusionError:
            raise
        except Exception as problem:
            raise self._translate(problem, f"llm_join({left_on}, {right_on})") from problem

    def parse_sql_expr(self, expr: str) -> Expr:
        """The expression of the SQL text ``expr``, which may contain calls."""
        return self._parse(expr, "SELECT ")

    def select_exprs(self, *args: str) -> Frame:
        """One column per SQL expression, which may contain calls."""
        ready = [self._session.calls.reading(self.engine, f"SELECT {text}")() for text in args]
        ours = [rewrite(r.sql, EXPRESSIONS) for r in ready]
        texts = [text.removeprefix("SELECT ") for text in ours]
        written = {name: ways for r in ready for name, ways in r.written.items()}
        return name_columns(self._next(self._select_texts, *texts), written)

    def _select_texts(self, below: DataFrame, *texts: str) -> DataFrame:
        # DataFusion returns an unwrapped frame here.
        return DataFrame(self._up_to_date(below).df.select_exprs(*texts))

    def _up_to_date(self, frame: DataFrame) -> DataFrame:
        """The frame with the session's current functions: DataFusion's frames know only the
        functions that were registered when they were created."""
        plan = frame.logical_plan()
        return SessionContext.create_dataframe_from_logical_plan(self._session, plan)

    def _next(self, method: Callable[..., DataFrame], *args: Any, **kwargs: Any) -> Frame:
        """The frame that a method of DataFrame returns for this one."""
        try:
            args, kwargs = with_names_of_media(self, args, kwargs)
            made, origin = apply(Verb(method, self, args, kwargs))
        except Exception as problem:
            if is_foreign(problem) and isinstance(problem, Exception):
                expressions = " ".join(str(a) for a in args if isinstance(a, Expr))
                raise self._translate(problem, readable(expressions)) from problem
            raise
        inputs = [a for a in (self, *args, *kwargs.values()) if isinstance(a, Frame)]
        frame = Frame(made.df, self._session, origin, lowest([a.budget for a in inputs]))
        frame.within = next((a.within for a in inputs if a.within is not None), None)
        return frame

    def with_budget(self, budget: Budget | None) -> Frame:
        """This frame with spending limits for each of its runs; None: only the session's limits.

        The budget replaces the frame's own, and frames derived by methods inherit it; a frame made
        of two has the lower of each limit. A run that would need more raises BudgetExceeded. Its
        answers are kept, and a run with a larger budget continues from there.
        """
        frame = Frame(self.df, self._session, self.origin, checked_budget(budget))
        frame.source, frame.statement, frame.renewed = self.source, self.statement, self.renewed
        frame.unnamed_table, frame.within = self.unnamed_table, self.within
        return frame

    def _parse(self, text: str, place: str) -> Expr:
        """``text`` as an expression; ``place`` is the SQL before it, which determines its type."""
        ready = self._session.calls.reading(self.engine, f"{place}{text}")().sql
        ready = rewrite(ready, EXPRESSIONS).removeprefix(place)
        try:
            return expression(self, self._up_to_date(self), ready)
        except Exception as problem:
            raise self._translate(problem, text) from problem

    def tail(self, n: int = 5) -> Frame:
        """The last ``n`` rows."""
        return self.limit(n, offset=max(0, self.count() - n))

    # --- planning --------------------------------------------------------------------------------

    @cached_property
    def prepared(self) -> PreparedFrame:
        """The plan of this frame, made once; it asks nothing and reads no data."""
        return self.prepare(parts=True)

    def prepare(self, *, parts: bool, careful: bool = False) -> PreparedFrame:
        """A plan of this frame; ``parts``: parts of the query may be staged separately;
        ``careful``: rows on which an expression may fail are asked first."""
        prepared = prepare(self.source or self, parts=parts, careful=careful)
        within = self.within or self._session.options.approximate
        return self._with_samples(prepared, within) if within else prepared

    def answer_tables(
        self, dispatcher: Dispatcher, *, eager: bool
    ) -> Generator[pa.Table, None, None]:
        """The result as tables of this frame's schema, at least one, with the answers of
        ``dispatcher``."""
        from blendfusion.run.frame_run import answer_frame

        return answer_frame(self, dispatcher, eager=eager)

    @property
    def trace(self) -> Trace:
        """The questions, answers and spending of the latest run of this frame; empty before a
        run."""
        from blendfusion.run.reports.trace import Trace

        return self.latest.trace or Trace()

    @property
    def last_counts(self) -> dict[int, Counts]:
        """Rows seen by each stage in the latest run; empty before a run, or after a plain one."""
        execution = self.latest.execution
        return {} if execution is None else execution.counts

    @contextmanager
    def _traced_by(self, other: Frame) -> Iterator[None]:
        """Record the run of ``other`` within this context as this frame's latest, also if it
        fails."""
        try:
            yield
        finally:
            self.latest.trace = other.latest.trace

    @property
    def _hides(self) -> bool:
        return self._session.options.show_values == "off"

    def _translate(self, problem: Exception, text: str = "") -> BlendFusionError:
        return understood_error(self, problem, text)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Convert DataFusion's exceptions within this context to ExecutionError."""
        called = functions_in(" ".join(call.text for call in self.prepared.calls))
        try:
            with running(self._session.options.redaction, called):
                yield
        except BlendFusionError as problem:
            place_error_in(self, problem)
            raise

    # --- running ---------------------------------------------------------------------------------

    @property
    def _runs_here(self) -> bool:
        """Whether DataFusion alone cannot run it: it has calls, or a query finds the rows of its
        statement."""
        return bool(self.statement or self.prepared.calls)

    def _tables(self, *, eager: bool, whole: bool = False) -> Generator[pa.Table, None, None]:
        """The result as tables of this frame's schema, at least one."""
        from blendfusion.run.frame_run import tables_of

        return tables_of(self, eager=eager, whole=whole)

    def _table(self) -> pa.Table:
        with self._session.telling(), closing(self._tables(eager=True, whole=True)) as tables:
            return concat(list(tables))

    def _result(self) -> DataFrame:
        """A plain DataFrame over the result."""
        if not self._runs_here:
            return self._at_once(lambda plain: plain)
        return self._session.plain_frame(self._table())

    @property
    def _plain(self) -> DataFrame:
        """DataFusion's own frame, to be run by DataFusion alone."""
        return without_bugs(self)

    def _plain_rows(self) -> Generator[pa.Table, None, None]:
        """The result of a frame without calls, batch by batch."""
        with self._session.telling(), closing(self._session.scan_run()) as run:
            plain = self._plain
            begin = partial(run.begin, plain, partial(DataFrame.execute_stream, plain))
            for batch in Pump().batches(begin, asks=False, query=written_sql(self)):
                yield pa.Table.from_batches([batch])

    def _at_once(self, work: Callable[[DataFrame], T]) -> T:
        """The result of ``work`` for DataFusion's own frame, in a run of its own."""
        with closing(self._session.scan_run()) as run:
            plain = self._plain
            return Pump().call(partial(run.begin, plain, partial(work, plain)))

    # --- results ---------------------------------------------------------------------------------

    def collect(self) -> list[pa.RecordBatch]:
        if not self._runs_here:
            return [b for table in self._plain_rows() for b in table.to_batches()]
        batches: list[pa.RecordBatch] = self._table().to_batches()
        return batches

    async def collect_async(self) -> list[pa.RecordBatch]:
        """As ``collect``, in a thread of its own, while the event loop runs. Cancelling the task
        ends the work; the answers so far are stored."""
        return await in_background(self.collect)

    async def to_arrow_table_async(self) -> pa.Table:
        """As ``to_arrow_table``; see ``collect_async``."""
        return await in_background(self.to_arrow_table)

    def collect_partitioned(self) -> list[list[pa.RecordBatch]]:
        if self._runs_here:
            return [self.collect()]
        return self._at_once(DataFrame.collect_partitioned)

    def collect_column(self, column_name: str) -> pa.Array | pa.ChunkedArray:
        return self.select(column_name).to_arrow_table().column(0)

    def to_arrow_table(self) -> pa.Table:
        if self._runs_here:
            return self._table()
        tables = list(self._plain_rows())
        return concat(tables) if tables else self.schema().empty_table()

    def to_pandas(self) -> pd.DataFrame:
        require_package("pandas", "to_arrow_table() and to_pylist() need nothing else")
        return convert(self.to_arrow_table(), pandas_of, "pandas")

    def to_polars(self) -> pl.DataFrame:
        require_package("polars", "to_arrow_table() and to_pylist() need nothing else")
        return convert(self.to_arrow_table(), polars_of, "Polars")

    def to_pylist(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = convert(self.to_arrow_table(), pa.Table.to_pylist)
        return rows

    def to_pydict(self) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = convert(self.to_arrow_table(), pa.Table.to_pydict)
        return columns

    def count(self) -> int:
        counted = self.aggregate([], [f.count(lit(1)).alias("rows")])
        with self._traced_by(counted):
            return int(counted.to_arrow_table().column(0)[0].as_py())

    def execute_stream(self) -> Any:
        """Batches of the result, lazily: closing the stream early ends the work."""
        return self.stream(eager=False)

    def stream(self, *, eager: bool) -> Stream:
        """As ``execute_stream``. ``eager``: all of it will be read, so the first chunks of rows are
        as large as the others."""
        tables = self._tables(eager=eager) if self._runs_here else self._plain_rows()
        return Stream(self.schema(), tables, self._session.options.redaction)

    def execution_plan(self) -> ExecutionPlan:
        """DataFusion's own physical plan, without the planner. Raises QueryError for an UPDATE and
        a DELETE, which DataFusion 55 carries out to make it."""
        if is_row_change(self.logical_plan()):
            raise QueryError(
                "an UPDATE or DELETE has no execution plan before it runs",
                hint="explain() shows its plan; collect() carries it out.",
            )
        return DataFrame.execution_plan(self)

    def execute_stream_partitioned(self) -> list[Any]:
        return [self.execute_stream()]

    def __iter__(self) -> Iterator[RecordBatch]:
        return iter(self.execute_stream())

    def __aiter__(self) -> AsyncIterator[RecordBatch]:
        stream: AsyncIterator[RecordBatch] = self.execute_stream().__aiter__()
        return stream

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.execute_stream().__arrow_c_stream__(requested_schema)

    def cache(self) -> Frame:
        """A frame over the stored result: the model is asked once, now."""
        stored = self._result() if self._runs_here else self._at_once(DataFrame.cache)
        cached = cast("Frame", self._session.new_unnamed(stored)).with_budget(self.budget)
        cached.latest.trace = self.latest.trace
        return cached

    def into_view(self, temporary: bool = False) -> Table:
        """This frame as a table, for ``session.register_table``."""
        self._session.views.hold(f"view {id(self)}", unnamed_tables(self))
        return DataFrame.into_view(self, temporary)

    def show(self, num: int = 20) -> None:
        limited = self.limit(num)
        with self._traced_by(limited):
            result = limited._result()
            Pump().call(lambda: result.show(num))
        if self.within or self._session.options.approximate:
            print(limited._bounds_text())

    def describe(self) -> Frame:
        return Frame(Pump().call(self._result().describe).df, self._session)

    def __repr__(self) -> str:
        """The first rows if the cache has all of their answers, else the plan; asks nothing."""
        from blendfusion.run.reports.reprs import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        """The HTML of ``__repr__`` for a notebook, with values escaped as text."""
        from blendfusion.run.reports.reprs import as_html

        return as_html(self)

    if not TYPE_CHECKING:  # a type checker refuses what is not declared

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError, with the method that does what one of pandas is for."""
            if name.startswith("_") or hasattr(type(self), name):
                object.__getattribute__(self, name)  # the error as it is
            absent = missing_method(name)
            if absent is not None:
                raise AttributeError(absent, name=name, obj=self)
            raise AttributeError(missing(name, self.columns, dir(type(self))), name=name, obj=self)

    # --- explaining ------------------------------------------------------------------------------

    def schema(self) -> pa.Schema:
        """The names and types of the columns, as the batches of a run have them."""
        return self._planned_schema

    @cached_property
    def _planned_schema(self) -> pa.Schema:
        try:
            return planned_schema(self)
        except Exception:  # of a constant: the run says what is wrong
            return DataFrame.schema(self)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(DataFrame.schema(self).names)

    @property
    def engine(self) -> Engine:
        """The services of the session that this frame belongs to."""
        return self._session.engine

    @property
    def session(self) -> BaseSession:
        """The session that this frame belongs to."""
        return self._session

    def estimate(self) -> Estimate:
        """The expected questions and spending of a run of this frame, call by call.

        No model is asked or loaded. The parts without a model are computed on real rows, at most
        100,000 of a plan; larger inputs are sampled, as ``basis`` states. Cached answers count as
        ``cached``, not as asked.
        """
        estimators = parts("estimates")
        if not estimators:
            raise OptionError(
                "an estimate needs the service blendfusion/services/estimates, which is not installed"
            )
        estimate: Estimate = estimators[0](self)
        self.latest.expected = estimate.total.values if estimate.complete else None
        return estimate

    def explain(
        self, verbose: bool = False, analyze: bool = False, *args: Any, **kwargs: Any
    ) -> None:
        """Print the staged plan with the expected questions of its calls (see ``estimate``). With
        ``analyze``, run it and print the counts. ``verbose`` adds the effect of each rule.

        Further arguments are DataFusion's, for frames without calls.
        """
        if not self.prepared.calls:
            if self._changes_rows:  # DataFusion carries it out to explain it
                print(self.explain_text())
                return
            with redirect_stdout(StringIO()) as written_out:
                self._plain.explain(verbose, analyze, *args, **kwargs)
            text = written_out.getvalue().rstrip("\n")
            print(without_filters(text) if analyze and self._hides else text)
            return
        print(self.explain_text(analyze=analyze, verbose=verbose))

    @property
    def _changes_rows(self) -> bool:
        return DataFrame.logical_plan(self).display().startswith("Dml: op=[")

    def explain_text(
        self, *, analyze: bool = False, verbose: bool = False, estimates: bool = True
    ) -> str:
        """The staged plan as text: see ``explain``. Without ``estimates``, no data is read for
        it."""
        if not self.prepared.calls:
            notes = self._session.scan_notes(self._plain)
            return self._show("\n".join([str(optimize(self).display_indent()), *notes]))
        from blendfusion.run.reports.explain import explain_frame

        estimate = self.estimate() if estimates and parts("estimates") else None
        if analyze:
            self._table()
        text = explain_frame(self, analyze=analyze, verbose=verbose, estimate=estimate)
        for part in unread_parts(self):
            text += f"\nNot read for the types of answers: {part}"
        return self._show(text)

    def _show(self, text: str) -> str:
        """A plan without the values of parameters, if values are hidden."""
        for value in parameter_texts(self) if self._hides else ():
            text = text.replace(value, WITHHELD)
        return printable(text)

    # --- writing ---------------------------------------------------------------------------------

    write_csv = writer(DataFrame.write_csv)
    write_json = writer(DataFrame.write_json)
    write_parquet = writer(DataFrame.write_parquet)  # type: ignore[assignment]
    write_parquet_with_options = writer(DataFrame.write_parquet_with_options)

    def write_table(
        self,
        table_name: str,
        write_options: DataFrameWriteOptions | None = None,
        *,
        mode: str = "append",
        key: str | Sequence[str] | None = None,
    ) -> Any:
        """Write the result to a table: of an attached database (``shop.answers``), or of the
        session.

        All rows are written or none. ``mode`` is "append"; "replace", the table then has these rows
        and no others; or "upsert", a row whose ``key`` (a column, or several) the table has changes
        that row. A table that is missing is made, with ``key`` as its primary key. Columns go by
        their names. A table of the session takes "append" alone, and ``write_options`` of
        DataFusion. Returns a report that says how many rows were written, None for a table of the
        session. Raises QueryError, before anything is asked, for a database that is attached for
        reading only, columns that the table does not have and types that do not fit.
        """
        for module in parts("destinations"):
            report = module.write_frame(self, table_name, mode, key)
            if report is not None:
                return report
        if mode != "append" or key is not None:
            raise QueryError(
                f"'{table_name}' is of no attached database, and takes mode='append' alone",
                hint="session.attach(…, read_only=False), and its name in front: 'shop.answers'.",
            )
        return writer(DataFrame.write_table)(self, table_name, write_options)
