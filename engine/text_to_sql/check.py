"""Checks a drafted query without asking a model: it reads, it plans, and it gives rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datafusion.plan import LogicalPlan
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from blendfusion.budget import Budget
from blendfusion.errors import BlendFusionError

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.session import Session

FAILS, EMPTY, GIVES_ROWS = range(3)
"""The results of a check, from worst to best."""
_SCAN = re.compile(r"TableScan: (\S+)")
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


def check(session: Session, sql: str, tables: Collection[str], budget: Budget | None) -> Checked:
    """Plan ``sql`` and see whether it gives rows. Only reading ``tables`` is allowed."""
    try:
        frame = session.sql(sql, read_only=True, budget=budget)
        outside = sorted(_scanned(frame.logical_plan()) - {name.lower() for name in tables})
        if outside:
            problem = f"the table {outside[0]} is not among the tables of the question"
            return Checked(Attempt(sql, problem, f"Use {', '.join(sorted(tables))}.", FAILS))
        rows = _rows(frame)
        empty = not rows if rows is not None else _reaches_no_model(frame)
    except BlendFusionError as error:
        return Checked(Attempt(sql, error.message, error.hint or "", FAILS))
    if not empty:
        return Checked(Attempt(sql), frame, rows)
    culprit = _emptying(session, sql) if rows is not None else ""
    problem = "the query gives no rows"
    hint = f"No row meets {culprit}." if culprit else ""
    return Checked(Attempt(sql, problem, hint, EMPTY), frame, rows)


def _rows(frame: Frame) -> tuple[str, ...] | None:
    if frame.prepared.calls:
        return None
    found = frame.limit(_AGREEMENT_ROWS).to_arrow_table()
    if found.num_rows == 1 and all(column.null_count for column in found.columns):
        return ()
    return tuple(sorted(repr([*row.values()]) for row in found.to_pylist()))


def _reaches_no_model(frame: Frame) -> bool:
    operators = frame.estimate().operators
    return bool(operators) and all(op.exact and op.rows == 0 for op in operators)


def _scanned(plan: LogicalPlan) -> set[str]:
    """The tables that a plan reads, also in subqueries, in lower case. A text in the plan that
    looks like a scan counts as one."""
    return {name.lower() for name in _SCAN.findall(plan.display_indent())}


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
    try:
        tree = parse_one(sql, dialect="postgres")
    except SqlglotError:
        return
    where = tree.args.get("where")
    if not isinstance(where, exp.Where):
        return
    terms = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    for place, term in enumerate(terms[:_MOST_PREDICATES]):
        kept = [other.copy() for other in terms[:place] + terms[place + 1 :]]
        copy = tree.copy()
        copy.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
        yield term.sql("postgres"), copy.sql("postgres")
