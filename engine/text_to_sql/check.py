"""Checks a drafted query without asking a model: it reads, it plans, and it gives rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from blendfusion.budget import Budget
from blendfusion.datafusion.scans import scans, table_of
from blendfusion.errors import BlendFusionError
from blendfusion.estimates.estimate import Estimate
from blendfusion.text_to_sql.where import parsed, predicates

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.session import Session

FAILS, EMPTY, GIVES_ROWS = range(3)
"""The results of a check, from worst to best."""
_MOST_PREDICATES = 6
_AGREEMENT_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Attempt:
    """A drafted query. ``problem`` is '' if there is none; ``rank``: FAILS, EMPTY or GIVES_ROWS."""

    sql: str
    problem: str = ""
    hint: str = ""
    rank: int = GIVES_ROWS

    def __str__(self) -> str:
        outcome = self.problem or "plans and gives rows"
        return f"{self.sql}\n  -- {outcome}" + (f" ({self.hint})" if self.hint else "")


@dataclass(frozen=True, slots=True)
class Checked:
    """An attempt with its frame; ``frame`` is None if it fails."""

    attempt: Attempt
    frame: Frame | None = None
    rows: tuple[str, ...] | None = None
    """The rows of a query without calls, as sorted texts; None for a query with calls."""
    estimate: Estimate = field(default_factory=Estimate)


def check(session: Session, sql: str, tables: Collection[str], budget: Budget | None) -> Checked:
    """Plan ``sql`` and see whether it gives rows. Only reading ``tables`` is allowed."""
    try:
        frame = session.sql(sql, read_only=True, budget=budget)
        outside = _outside(frame, tables)
        if outside is not None:
            problem = f"the table {outside} is not among the tables of the question"
            return Checked(Attempt(sql, problem, f"Use {', '.join(sorted(tables))}.", FAILS))
        rows = _rows(frame)
        estimate = frame.estimate()
        empty = not rows if rows is not None else _reaches_no_model(estimate)
    except BlendFusionError as error:
        return Checked(Attempt(sql, error.message, error.hint or "", FAILS))
    if not empty:
        return Checked(Attempt(sql), frame, rows, estimate)
    culprit = _emptying(session, sql) if rows is not None else ""
    problem = "the query gives no rows"
    hint = f"No row meets {culprit}." if culprit else ""
    return Checked(Attempt(sql, problem, hint, EMPTY), frame, rows, estimate)


def _outside(frame: Frame, tables: Collection[str]) -> str | None:
    """The first table that a query reads beside ``tables``, whatever the letter case."""
    folded = [name.casefold() for name in tables]
    read = sorted(scans(frame.logical_plan()))
    return next((s.split()[0] for s in read if table_of(s.casefold(), folded) is None), None)


def _rows(frame: Frame) -> tuple[str, ...] | None:
    if frame.prepared.calls:
        return None
    found = frame.limit(_AGREEMENT_ROWS).to_arrow_table()
    if found.num_rows == 1 and all(column.null_count for column in found.columns):
        return ()
    return tuple(sorted(repr([*row.values()]) for row in found.to_pylist()))


def _reaches_no_model(estimate: Estimate) -> bool:
    operators = estimate.operators
    return bool(operators) and all(op.exact and op.rows == 0 for op in operators)


def _emptying(session: Session, sql: str) -> str:
    """The first predicate of a query without which it gives rows; '' if there is none."""
    for text, without in _without_each_predicate(sql):
        try:
            if _rows(session.sql(without, read_only=True)):
                return text
        except BlendFusionError:
            continue
    return ""


def _without_each_predicate(sql: str) -> Iterator[tuple[str, str]]:
    tree = parsed(sql)
    if tree is None:
        return
    terms = predicates(tree)
    for place, term in enumerate(terms[:_MOST_PREDICATES]):
        kept = [other.copy() for other in terms[:place] + terms[place + 1 :]]
        copy = tree.copy()
        copy.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
        yield term.sql("postgres"), copy.sql("postgres")
