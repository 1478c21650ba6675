"""Runs one query with every call on every row, and as it is planned, and compares the two."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from datafusion import DataFrame, SessionConfig
from random_queries import Query
from random_tables import database, tables
from scripts import Counted, tuples, unordered

from blendfusion.planner.rules import SIMILAR_FIRST
from blendfusion.types import Task

DATABASES = 24
"""How many sets of tables there are; the first is empty."""

Rows = list[tuple[object, ...]]


class Outcome(NamedTuple):
    """What came of a query: its types and rows, or an error; the values asked, and how many of them
    once more."""

    types: tuple[str, ...]
    rows: Rows
    asked: frozenset[object]
    repeated: int
    error: str | None = None
    reason: str | None = None
    """Why the query did not run as planned, if it did not."""
    declared: tuple[str, ...] = ()
    """The types that DataFusion says the query has."""


class Databases(NamedTuple):
    """The same tables in a session that evaluates every call on every row, and in one that
    plans."""

    plain: Counted
    planned: Counted


@cache
def databases(seed: int) -> Databases:
    """Sessions are dear and queries cheap: many queries share them. Every other one has chunks that
    are smaller than its tables."""
    stored = tables(seed)
    chunks = {"first_chunk_rows": 2, "chunk_rows": 32} if seed % 2 else {}
    return Databases(database(stored, planner=False), database(stored, **chunks))


def outcome(counted: Counted, sql: str, rules_off: tuple[str, ...] = ()) -> Outcome:
    """Run a query in a session that has forgotten all answers, without some rules."""
    counted.session.clear_cache()
    counted.model.calls.clear()
    # With some rules off all others are on, the one too that a session has to ask for.
    counted.session.plans.rules_off = rules_off or (SIMILAR_FIRST,)
    try:
        frame = counted.session.sql(sql)
        table = frame.to_arrow_table()
    except Exception as problem:  # DataFusion raises plain Exceptions
        return Outcome((), [], frozenset(), 0, f"{type(problem).__name__}: {problem}")
    calls = [(call.task, call.values) for call in counted.model.calls]
    asked = frozenset((as_seen(task), values) for task, values in calls)
    repeated = len(calls) - len(set(calls))
    types, declared = (tuple(map(str, s.types)) for s in (table.schema, frame.schema()))
    reason = frame.prepared.reason
    return Outcome(types, tuples(table), asked, repeated, None, reason, declared)


def as_seen(task: Task) -> Task:
    """The task as the model sees it: no prompt shows the name of an only value, so that equal texts
    of two columns are one question."""
    return replace(task, columns=("",)) if len(task.columns) == 1 and not task.aggregate else task


def contradicts_itself(seed: int, sql: str, plain: Outcome) -> bool:
    """Whether DataFusion, with every call evaluated on every row, gives other rows if it joins by
    sorting.

    DataFusion 55 pushes a filter below a hash join on its kept side by the names of columns alone:
    with two of a name rows come out wrong, in plain SQL too."""
    sorting = SessionConfig().set("datafusion.optimizer.prefer_hash_join", "false")
    other = outcome(database(tables(seed), planner=False, config=sorting), sql)
    return not other.error and unordered(other.rows) != unordered(plain.rows)


def difference(query: Query, plain: Outcome, planned: Outcome) -> str | None:
    """In what the two differ that must not, if in anything.

    ``plain`` is of the query without its bounds. What DataFusion itself cannot run has nothing to
    be compared with."""
    if plain.error:
        return None
    if planned.error:
        return f"it raises {planned.error}"
    # Of a union that its limit leaves empty, DataFusion gives the types of the first branch.
    empty = query.bounds is not None and not planned.rows
    if planned.types != plain.types and not (empty and planned.types == plain.declared):
        return f"types: {planned.types}\nright: {plain.types}"
    if planned.repeated:
        return "a value was asked twice"
    if _same_rows(query, plain.rows, planned.rows):
        return None
    return f"rows: {unordered(planned.rows)}\nright: {unordered(plain.rows)}"


def _same_rows(query: Query, plain: Rows, planned: Rows) -> bool:
    if query.bounds is not None:
        limit, offset = query.bounds
        right = min(limit, max(0, len(plain) - offset))
        return len(planned) == right and not Counter(planned) - Counter(plain)
    if query.ordered:
        return planned == plain
    return unordered(planned) == unordered(plain)


def joins(counted: Counted, sql: str) -> bool:
    """Whether DataFusion runs a query by joins: those of its text, of subqueries, INTERSECT,
    EXCEPT."""
    frame = counted.session.sql(sql)
    return "Join" in DataFrame.execution_plan(frame).display_indent()


def explained(counted: Counted, sql: str, rules_off: tuple[str, ...]) -> str:
    """The plan of a query as text, or why there is none."""
    counted.session.plans.rules_off = rules_off
    try:
        return counted.session.sql(sql).explain_text()
    except Exception as problem:
        return str(problem)
