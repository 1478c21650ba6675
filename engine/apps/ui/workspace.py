"""The state behind the page: a session, one query at a time, and the runs so far."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import blendfusion as bf
from blendfusion.apps.ui.cells import rows_of
from blendfusion.apps.ui.provenance import CORRECTIONS, answers_behind, corrections_table
from blendfusion.apps.ui.views import View, summary_of
from blendfusion.budget import money
from blendfusion.errors import BlendFusionError, QueryError, given_names
from blendfusion.files.reading import table_name
from blendfusion.language.query_text.read_only import check_text
from blendfusion.language.query_text.statements import is_planned_only
from blendfusion.models.protocol.interrupts import interrupt, interruptible
from blendfusion.redaction import printable
from blendfusion.run.observe.progress import Reporter
from blendfusion.run.reports.explain import explain_frame
from blendfusion.udfs.register.user_functions import known_ingredients

ROWS = 100_000
"""Rows of a result that are kept; a query that gives more ends there."""
_KEPT = 20
"""Runs whose rows, answers and traces are kept."""
_DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")
_PAGE = 200
"""Maximum rows of one reply."""

Outcome = Literal["running", "done", "failed", "stopped"]


class Progress(Reporter):
    """The latest totals of a run."""

    shows = True

    def __init__(self) -> None:
        self.done, self.known, self.tokens, self.cached = 0, 0, 0, 0
        self._started, self._expected = time.monotonic(), 0.0
        self._first = (0, 0.0)

    def expect(self, seconds: float) -> None:
        self._expected = seconds

    def update(self, done: int, known: int | None, tokens: int, cached: int) -> None:
        if done and not self._first[0]:
            self._first = done, time.monotonic()
        self.done, self.known, self.tokens, self.cached = done, known or done, tokens, cached

    @property
    def seconds_left(self) -> float | None:
        """The seconds that the run still takes, as far as it is known: from the pace since the
        first answers, or from earlier runs."""
        now, (first, since) = time.monotonic(), self._first
        if first and self.done > first:
            return (now - since) * max(self.known - self.done, 0) / (self.done - first)
        left = self._expected - (now - self._started)
        return left if left > 0 else None


@dataclass
class PlannedQuery:
    """A query that is ready to run, with its estimate."""

    sql: str
    dialect: str | None
    frame: bf.Frame
    estimate: bf.Estimate


@dataclass
class Run:
    """The state of one query while it runs, and afterwards."""

    id: int
    sql: str
    outcome: Outcome = "running"
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    planned: PlannedQuery | None = None
    progress: Progress = field(default_factory=Progress)
    table: pa.Table | None = None
    calls: pa.Table | None = None
    cut: bool = False
    """The query has more rows than are kept."""
    plan: str = ""
    error: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    thread: threading.Thread | None = None
    spent: tuple[bf.Usage, float | None] | None = None
    """The usage and the cost of a run whose frame is not kept."""

    @property
    def trace(self) -> bf.Trace:
        """The trace so far; empty before the query is planned."""
        return bf.Trace() if self.planned is None else self.planned.frame.trace

    @property
    def spending(self) -> tuple[bf.Usage, float | None]:
        """The usage and the cost so far."""
        return self.spent or (self.trace.usage, self.trace.cost)

    def forget(self) -> None:
        """Free the table and the plan; keep the figures that the history shows."""
        self.spent = self.spending
        self.table = self.calls = self.planned = self.thread = None


class Workspace:
    """Runs the queries of one page, one at a time. Its methods may be called from any thread.

    ``confirm_above``: a query that is expected to ask more values runs only once it is confirmed.
    """

    def __init__(
        self,
        session: bf.Session,
        dialect: str | None = None,
        budget: bf.Budget | None = None,
        confirm_above: int = 0,
    ) -> None:
        self.session = session
        self._dialect = dialect
        self._budget = budget
        self._confirm_above = confirm_above
        self._planned: PlannedQuery | None = None
        self._view: tuple[int, View, pa.Table] | None = None
        self._viewing = threading.Lock()
        """Held to compute a view: the page asks for its rows and their number at the same time."""
        self._corrections: list[dict[str, str]] = []
        self._uploads: tempfile.TemporaryDirectory[str] | None = None
        self._runs: dict[int, Run] = {}
        self._lock = threading.RLock()
        """Held by whoever uses the session; a run holds it to its end."""
        self._short = threading.Lock()
        """Held for moments, to start and to end a run."""

    # --- before a run ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The tables, functions, settings and the runs so far."""
        session = self.session
        ledger = session.ledger
        return {
            "model": ", ".join(session.model_names) or "the default model, not loaded",
            "read_only": session.options.read_only,
            "tables": [
                *map(self._table, given_names(session.catalog().schema().names())),
                *self._attached_tables(),
            ],
            "functions": [
                {
                    "name": found.name,
                    "signature": found.signature,
                    "summary": found.summary,
                    "options": [name for option in found.options for name in option.names],
                }
                for found in sorted(known_ingredients().values(), key=lambda found: found.name)
            ],
            "dialect": self._dialect,
            "budget": ", ".join(f"{name}={limit:g}" for name, limit in session.budget.limits()),
            "spent": {
                "values": ledger.usage.values,
                "tokens": ledger.usage.evaluated_tokens + ledger.usage.completion_tokens,
                "cost": _cost(ledger.cost),
            },
            "history": [self._line(run) for run in reversed(self._runs.values())],
        }

    def _table(self, name: str) -> dict[str, Any]:
        try:
            schema = self.session.table(f'"{name}"').schema()
        except BlendFusionError:
            return {"name": name, "columns": []}
        return {"name": name, "columns": _columns(schema)}

    def _attached_tables(self) -> Iterator[dict[str, Any]]:
        """The tables of attached databases, as queries name them."""
        for database in sorted(getattr(self.session, "attached", {})):
            with suppress(Exception):  # a database that does not answer now
                schema = self.session.attached[database].default_schema
                for name in sorted(schema.table_names if schema is not None else ()):
                    yield {
                        "name": f"{database}.{name}",
                        "columns": [],
                        "sql": f'"{database}"."{name}"',
                    }

    def limit(self, text: str) -> None:
        """Set the session's budget from ``text``, as --budget has it; '' for none. Raises
        OptionError."""
        self.session.budget = bf.Budget.parsed(text) if text.strip() else bf.Budget()

    def open_upload(self, file: str) -> Path:
        """A place for a file of this name that the page sends."""
        name = Path(file.replace("\\", "/")).name
        if not name.strip(". "):
            raise QueryError(f"{file!r} is no name of a file")
        if self._uploads is None:
            self._uploads = tempfile.TemporaryDirectory(prefix="blendfusion-ui-")
        return Path(self._uploads.name, name)

    def add_upload(self, file: Path) -> dict[str, Any]:
        """Make a table of a file, or attach it if it is a database. Raises BlendFusionError."""
        with self._free():
            if file.suffix.lower() in _DATABASES:
                self.session.attach(str(file))
            else:
                name = table_name(file.name)
                if name in self.session.catalog().schema().names():
                    self.session.deregister_table(name)
                self.session.register_file(str(file), name)
        return self.state()

    def correct(self, question: str, text: str, answer: str, label: str) -> int:
        """Note the right answer about a text in the table of corrections, in place of an earlier
        one; returns their number."""
        given = {"question": question, "text": text, "answer": answer, "label": label}
        with self._free():
            kept = [c for c in self._corrections if (c["question"], c["text"]) != (question, text)]
            self._corrections = [*kept, given]
            if CORRECTIONS in self.session.catalog().schema().names():
                self.session.deregister_table(CORRECTIONS)
            self.session.from_arrow(corrections_table(self._corrections), CORRECTIONS)
        return len(self._corrections)

    def remember(self, sql: str, problem: BlendFusionError) -> None:
        """Keep a query that could not be planned in the history."""
        with self._short:
            run = Run(max(self._runs, default=0) + 1, sql, "failed", error=error_of(problem))
            self._runs[run.id] = run

    def plan(self, sql: str, dialect: str | None = None) -> dict[str, Any]:
        """The plan of a query and its estimate; asks nothing. Raises BlendFusionError, also for a
        statement that a read-only session refuses."""
        if self.session.options.read_only and not (dialect or self._dialect):
            check_text(sql, ())
        if not is_planned_only(sql):
            return {"plan": "", "expected": "runs at once, without an estimate", "confirm": True}
        with self._free():
            planned = self._plan(sql, dialect)
            self._planned = planned
            total = planned.estimate.total
            unknown = not planned.estimate.complete
            return {
                "plan": explain_frame(
                    planned.frame, analyze=False, verbose=False, estimate=planned.estimate
                )
                if planned.frame.prepared.calls
                else planned.frame.explain_text(),
                "expected": planned.estimate.lines()[0]
                if planned.estimate.operators
                else "asks no model",
                "values": None if unknown else total.values,
                "most": None if unknown else planned.estimate.most,
                "cost": _cost(planned.estimate.cost),
                "confirm": bool(self._confirm_above)
                and (unknown or total.values > self._confirm_above),
            }

    def _plan(self, sql: str, dialect: str | None) -> PlannedQuery:
        known = self._planned
        if known is not None and (known.sql, known.dialect) == (sql, dialect):
            return known
        frame = self._frame(sql, dialect)
        return PlannedQuery(sql, dialect, frame, frame.estimate())

    def _frame(self, sql: str, dialect: str | None) -> bf.Frame:
        return self.session.sql(sql, dialect=dialect or self._dialect, budget=self._budget)

    @contextmanager
    def _free(self) -> Iterator[None]:
        """Hold the session for a moment. Raises QueryError while a run holds it."""
        if not self._lock.acquire(timeout=2.0):
            raise _busy()
        try:
            yield
        finally:
            self._lock.release()

    # --- a run -----------------------------------------------------------------------------------

    def start(self, sql: str, dialect: str | None = None, *, confirmed: bool = False) -> int:
        """Begin a run; its number. Raises QueryError if another one runs, or if the query has to be
        confirmed, and BlendFusionError if it cannot be planned."""
        if not confirmed and self.plan(sql, dialect)["confirm"]:
            raise QueryError("this query has to be confirmed", hint="Confirm it on the page.")
        with self._short:
            if any(run.outcome == "running" for run in self._runs.values()):
                raise _busy()
            run = Run(max(self._runs, default=0) + 1, sql)
            self._runs[run.id] = run
            for old in list(self._runs)[:-_KEPT]:
                self._runs[old].forget()
            run.thread = threading.Thread(
                target=self._work, args=(run, dialect), name="blendfusion-ui", daemon=True
            )
            run.thread.start()
        return run.id

    def _work(self, run: Run, dialect: str | None) -> None:
        outcome: Outcome = "stopped"
        try:
            with interruptible(), self._lock:
                try:
                    self._carry_out(run, dialect)
                    outcome = "done"
                except Exception as problem:
                    outcome, run.error = "failed", error_of(problem)
                self._close(run, outcome)
        except KeyboardInterrupt:
            self._close(run, outcome)

    def _carry_out(self, run: Run, dialect: str | None) -> None:
        if is_planned_only(run.sql):
            planned = self._plan(run.sql, dialect)
        else:
            frame = self._frame(run.sql, dialect)
            planned = PlannedQuery(run.sql, dialect, frame, bf.Estimate())
        run.planned, frame = planned, planned.frame
        self.session.runs.reporter = run.progress
        try:
            stream = frame.execute_stream()
            batches, held = [], 0
            for batch in stream:
                batches.append(batch.to_pyarrow().slice(0, ROWS - held))
                held += len(batches[-1])
                if held == ROWS:
                    run.cut = True
                    stream.close()
                    break
            run.table = pa.Table.from_batches(batches) if batches else frame.schema().empty_table()
        finally:
            self.session.runs.reporter = None

    def _close(self, run: Run, outcome: Outcome) -> None:
        with self._short:
            if run.outcome != "running":
                return
            if run.planned is not None:
                run.plan, run.calls = self._live_plan(run), run.trace.calls
            self._planned = None
            run.seconds = time.monotonic() - run.started
            run.outcome = outcome

    def stop(self, number: int) -> None:
        """End a run. The answers so far are stored. Does nothing if the run has ended."""
        run = self._run(number)
        with self._short:
            if run.outcome == "running" and run.thread is not None:
                interrupt(run.thread)

    def warn(self, text: str) -> None:
        """Note a warning for the run in progress."""
        for run in reversed(self._runs.values()):
            if run.outcome == "running":
                run.warnings.append(printable(text))
                return

    def close(self, seconds: float = 10.0) -> None:
        """Stop the running queries, and wait for their ends for at most ``seconds``."""
        for run in list(self._runs.values()):
            if run.outcome == "running" and run.thread is not None:
                self.stop(run.id)
                run.thread.join(seconds)
        if self._uploads is not None:
            self._uploads.cleanup()

    # --- during and after ------------------------------------------------------------------------

    def progress(self, number: int) -> dict[str, Any]:
        """The counts of a run by now, its plan with them, and how it ended."""
        run = self._run(number)
        running = run.outcome == "running"
        usage, _ = run.spending
        return self._line(run) | {
            "plan": self._live_plan(run) if running else run.plan,
            "done": run.progress.done,
            "known": run.progress.known,
            "expected": None if run.planned is None else run.planned.estimate.total.values,
            "tokens": max(run.progress.tokens, usage.evaluated_tokens + usage.completion_tokens),
            "failed": usage.failed,
            "left": run.progress.seconds_left if running else None,
            "columns": [] if run.table is None else _columns(run.table.schema),
            "cut": run.cut,
            "answers": 0 if run.calls is None else run.calls.num_rows,
            "error": run.error,
            "warnings": run.warnings,
        }

    def _line(self, run: Run) -> dict[str, Any]:
        usage, cost = run.spending
        running = run.outcome == "running"
        return {
            "id": run.id,
            "sql": run.sql,
            "outcome": run.outcome,
            "seconds": time.monotonic() - run.started if running else run.seconds,
            "rows": None if run.table is None else run.table.num_rows,
            "values": usage.values,
            "cached": usage.cached,
            "cost": _cost(cost),
        }

    def _live_plan(self, run: Run) -> str:
        planned = run.planned
        if planned is None or not planned.frame.prepared.calls:
            return run.plan
        with suppress(RuntimeError):  # counts were added meanwhile: the next look shows them
            run.plan = explain_frame(
                planned.frame, analyze=True, verbose=False, estimate=planned.estimate
            )
        return run.plan

    def rows(
        self, number: int, first: int, count: int, view: View | None = None
    ) -> list[list[Any]]:
        """Some rows of a view of a result."""
        return rows_of(self.table(number, view or View()), max(first, 0), min(count, _PAGE))

    def table(self, number: int, view: View) -> pa.Table:
        """The rows of a view. Raises QueryError if they are not kept."""
        table = self._run(number).table
        if table is None:
            raise QueryError("the rows of this run are not kept", hint="Run it again.")
        with self._viewing:
            known = self._view
            if known is None or known[:2] != (number, view):
                self._view = known = (number, view, view.of(table))
            return known[2]

    def summary(self, number: int, view: View) -> list[dict[str, Any]]:
        """Each column of a view: see ``summary_of``."""
        return summary_of(self.table(number, view))

    def provenance(self, number: int, view: View, row: int, column: int) -> list[dict[str, Any]]:
        """The answers behind a cell."""
        table, calls = self.table(number, view), self._run(number).calls
        if calls is None or not (0 <= row < len(table) and 0 <= column < table.num_columns):
            return []
        held = {
            str(place): values[row].as_py(maps_as_pydicts="lossy")
            for place, values in enumerate(table.columns)
        }
        return answers_behind(calls, held, held[str(column)], self.session.options.redaction)

    def answers(self, number: int, first: int, count: int) -> list[dict[str, Any]]:
        """Some answers of a run, with values as ``show_values`` and ``redact`` allow."""
        calls = self._run(number).calls
        if calls is None:
            raise QueryError("the answers of this run are not kept", hint="Run it again.")
        redaction = self.session.options.redaction
        return [
            {
                "call": ": ".join(part for part in (row["ingredient"], row["question"]) if part),
                "values": [None if v is None else redaction.page(v) for v in row["values"]],
                "answer": None if row["answer"] is None else redaction.page(row["answer"]),
                "error": None if row["error"] is None else redaction.page(row["error"]),
                "probability": None if row["logprob"] is None else exp(row["logprob"]),
                "model": row["model"],
                "cached": row["cached"],
                "tokens": row["evaluated_tokens"] + row["completion_tokens"],
            }
            for row in calls.slice(max(first, 0), min(count, _PAGE)).to_pylist()
        ]

    def trace_page(self, number: int) -> str:
        """The page of a run's trace."""
        run = self._run(number)
        if run.spent is not None:
            raise QueryError("the trace of this run is not kept", hint="Run it again.")
        return run.trace.to_html()

    def _run(self, number: int) -> Run:
        run = self._runs.get(number)
        if run is None:
            raise QueryError(f"there is no run {number}")
        return run


def _columns(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def _busy() -> QueryError:
    return QueryError("a query runs", hint="Stop it, or wait for its end.")


def _cost(cost: float | None) -> str | None:
    return money(cost) if cost else None


def error_of(problem: Exception) -> dict[str, Any]:
    """An error as the page shows it; of a bug, its class."""
    if isinstance(problem, BlendFusionError):
        span = problem.span if isinstance(problem, QueryError) else None
        return {
            "message": problem.message,
            "hint": problem.hint and problem.hint.on("page"),
            "span": span,
        }
    return {
        "message": f"an error of BlendFusion: {type(problem).__name__}",
        "hint": None,
        "span": None,
    }
