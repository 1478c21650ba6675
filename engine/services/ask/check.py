"""Checks a drafted query without asking a model: it reads, it plans, and it gives rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from blendfusion.budget import Budget
from blendfusion.datafusion.scans import scans, table_of
from blendfusion.errors import BlendFusionError
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.redaction import Redaction
from blendfusion.run.reports.estimate import Estimate
from blendfusion.services.ask.literals import show_literals
from blendfusion.services.ask.where import parse, predicates

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.prepare.frame_sources import FrameSources

FAILS, UNJOINED, EMPTY, NULLS, COSTLY, GIVES_ROWS = range(6)
"""The results of a check, from worst to best: no plan, a join of every row with every other, which
is not run, no rows, a column without a value, a run beyond the budget, and rows."""
_MOST_PREDICATES = 6
_AGREEMENT_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """A drafted query. ``problem`` is '' if there is none; ``rank``: FAILS to GIVES_ROWS."""

    sql: str
    problem: str = ""
    hint: str = ""
    rank: int = GIVES_ROWS
    quotes: tuple[str, ...] = ()
    """The parts of ``problem``, ``hint`` and ``notes`` that are text of the query."""
    notes: tuple[str, ...] = ()
    """Further doubts, each a sentence."""

    def problem_shown(self, query: Callable[[str], str], redaction: Redaction) -> str:
        """The problem with its hint: parts of the query as ``query`` shows them, other values as
        ``redaction`` does."""
        return self.text_shown(f"{self.problem}. {self.hint}".rstrip(), query, redaction)

    def text_shown(self, text: str, query: Callable[[str], str], redaction: Redaction) -> str:
        """A text about the query, as ``problem_shown`` shows it."""
        if not self.quotes:
            return show_literals(text, redaction)
        parts = re.split(rf"(?<!\w)({'|'.join(map(re.escape, self.quotes))})(?!\w)", text)
        return "".join(
            query(p) if n % 2 else show_literals(p, redaction) for n, p in enumerate(parts)
        )

    def __str__(self) -> str:
        outcome = self.problem or "plans and gives rows"
        return f"{self.sql}\n  -- {outcome}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True, slots=True)
class CheckedAttempt:
    """An attempt with its frame; ``frame`` is None if it fails."""

    attempt: Attempt
    frame: Frame | None = None
    rows: tuple[str, ...] | None = None
    """The rows of a query without calls, as sorted texts; None for a query with calls, and for rows
    that Python has no values for."""
    estimate: Estimate = field(default_factory=Estimate)

    @property
    def counts_nothing(self) -> bool:
        """Whether the result is one row of zeros."""
        return self.rows is not None and set(self.rows) == {"[0]"}


def check(
    session: FrameSources,
    sql: str,
    tables: Collection[str],
    budget: Budget | None,
    unjoined: tuple[str, str] | None = None,
) -> CheckedAttempt:
    """Plan ``sql`` and see whether it gives rows. Only reading ``tables`` is allowed. A query with
    a doubt that it is ``unjoined`` is planned, and not run."""
    try:
        if _first_word(sql) not in ("SELECT", "WITH"):
            return CheckedAttempt(
                Attempt(sql, "a draft is a read-only query", "Write SELECT …", FAILS)
            )
        frame = session.sql(sql, read_only=True, budget=budget)
        outside = _outside(session, frame, tables)
        if outside is not None:
            problem = f"the table {outside} is not among the tables of the question"
            return CheckedAttempt(Attempt(sql, problem, f"Use {', '.join(sorted(tables))}.", FAILS))
        if unjoined is not None:
            return CheckedAttempt(Attempt(sql, *unjoined, UNJOINED), frame)
        table = _table(frame)
        estimate = frame.estimate()
        empty = not table.num_rows if table is not None else _reaches_no_model(estimate)
    except BlendFusionError as error:
        return CheckedAttempt(Attempt(sql, error.message, error.hint or "", FAILS))
    attempt = _problem(session, sql, table, empty=empty) or _beyond(sql, estimate, budget)
    rows = None if table is None else _rows(table)
    return CheckedAttempt(attempt or Attempt(sql), frame, rows, estimate)


def _rows(table: pa.Table) -> tuple[str, ...] | None:
    try:
        return tuple(sorted(repr([*row.values()]) for row in table.to_pylist()))
    except (OverflowError, ValueError):  # a date that Python has no value for
        return None


def _problem(
    session: FrameSources, sql: str, table: pa.Table | None, *, empty: bool
) -> Attempt | None:
    """No rows, or a column that is NULL in all of them, with the predicate to blame."""
    if empty:
        culprit = _emptying(session, sql) if table is not None else ""
        hint = f"No row meets {culprit}." if culprit else ""
        quotes = tuple(filter(None, (culprit,)))
        return Attempt(sql, "the query gives no rows", hint, EMPTY, quotes)
    names = [] if table is None else _without_values(table)
    if not names:
        return None
    culprit = _emptying(session, sql, names[0])
    hint = f"Without {culprit} it has values." if culprit else ""
    quotes = tuple(filter(None, (culprit, names[0])))
    return Attempt(sql, f"the column {names[0]} is NULL in every row", hint, NULLS, quotes)


def _without_values(table: pa.Table) -> list[str]:
    """The columns that are NULL in every row, if there are rows."""
    columns = zip(table.schema.names, table.columns, strict=True)
    return [name for name, column in columns if column.null_count == table.num_rows]


def _beyond(sql: str, estimate: Estimate, budget: Budget | None) -> Attempt | None:
    """A run that is expected to exceed its budget."""
    spent = estimate.total
    known: dict[str, float | None] = {
        "values": spent.values,
        "calls": spent.calls,
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "seconds": estimate.seconds,
        "cost": estimate.cost,
    }
    for name, limit in budget.limits() if budget is not None else ():
        expected = known[name]
        if expected is not None and expected > limit:
            words = name.replace("_", " ")
            problem = (
                f"a run is expected to take {expected:,.6g} {words}; the budget is {limit:,.6g}"
            )
            hint = "Add a predicate on a column that a function need not judge, or a LIMIT."
            return Attempt(sql, problem, hint, COSTLY)
    return None


def _first_word(sql: str) -> str:
    reader = Reader(sql)
    at = 0
    while reader.opens(at):
        at += 1
    return reader.word(at)


def _outside(session: FrameSources, frame: Frame, tables: Collection[str]) -> str | None:
    """The first table that a query reads beside ``tables``, whatever the letter case: itself, or in
    a subquery that gives the options, the examples or the sample of a call."""
    folded = [name.casefold() for name in tables]
    read = sorted(scans(frame.logical_plan()))
    found = next((s.split()[0] for s in read if table_of(s.casefold(), folded) is None), None)
    for call in frame.prepared.calls:
        for query in call.task.subqueries:
            if found is None:
                found = _outside(session, session.sql(query, read_only=True), tables)
    return found


def _table(frame: Frame) -> pa.Table | None:
    """The first rows of a query; None for one with calls. A single row of NULLs, as of an aggregate
    over nothing, counts as no row."""
    if frame.prepared.calls:
        return None
    found = frame.limit(_AGREEMENT_ROWS).to_arrow_table()
    if found.num_rows == 1 and all(column.null_count for column in found.columns):
        return found.slice(0, 0)
    return found


def _reaches_no_model(estimate: Estimate) -> bool:
    operators = estimate.operators
    return bool(operators) and all(op.exact and op.rows == 0 for op in operators)


def _emptying(session: FrameSources, sql: str, column: str = "") -> str:
    """The first predicate of a query without which it gives rows, or values of ``column``; '' if
    there is none."""
    for text, without in _without_each_predicate(sql):
        try:
            found = _table(session.sql(without, read_only=True))
        except BlendFusionError:
            continue
        if found is not None and found.num_rows and column not in _without_values(found):
            return text
    return ""


def _without_each_predicate(sql: str) -> Iterator[tuple[str, str]]:
    tree = parse(sql)
    if tree is None:
        return
    terms = predicates(tree)
    for place, term in enumerate(terms[:_MOST_PREDICATES]):
        kept = [other.copy() for other in terms[:place] + terms[place + 1 :]]
        copy = tree.copy()
        copy.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
        yield term.sql("postgres"), copy.sql("postgres")
