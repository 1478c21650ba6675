"""Planning takes time in proportion to the parts of a query."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from functools import partial

import pytest
from amounts import long_after
from datafusion import DataFrame
from seconds import TRIES, least_seconds

import blendfusion as bf

SECONDS = 1.0
"""For 64 parts."""
GROWTH = 2 * 1.2
"""What twice the parts may cost."""
OF_COLUMNS = {"inner joins": 2 * 1.6}
"""The same where one block passes all joins, whose columns become more with each."""
IMMEASURABLE_SECONDS = 0.02
"""Shorter times say nothing about growth."""


def parts(n: int, text: str, between: str = " ") -> str:
    """``text`` for each number, with the number in place of #."""
    return between.join(text.replace("#", str(i)) for i in range(n))


SHAPES: dict[str, Callable[[int], str]] = {
    "left joins": lambda n: (
        "SELECT t.id FROM t "
        + parts(n, "LEFT JOIN t t# ON t#.id = t.id AND llm_filter('q#', t#.x)")
    ),
    "inner joins": lambda n: (
        "SELECT t.id FROM t " + parts(n, "JOIN t t# ON t#.id = t.id AND llm_filter('q#', t#.x)")
    ),
    "EXCEPT": lambda n: (
        "SELECT id FROM t "
        + parts(n, "EXCEPT SELECT id FROM t WHERE llm_filter('q#', x) AND id > 100")
    ),
    "INTERSECT": lambda n: (
        "SELECT id FROM t " + parts(n, "INTERSECT SELECT id FROM t WHERE llm_filter('q#', x)")
    ),
    "EXISTS": lambda n: (
        "SELECT id FROM t WHERE "
        + parts(
            n, "EXISTS (SELECT 1 FROM t z WHERE z.id = t.id AND llm_filter('q#', z.x))", " AND "
        )
    ),
    "NOT EXISTS": lambda n: (
        "SELECT id FROM t WHERE "
        + parts(
            n, "NOT EXISTS (SELECT 1 FROM t z WHERE z.id = t.id AND llm_filter('q#', z.x))", " AND "
        )
    ),
    "IN": lambda n: (
        "SELECT id FROM t WHERE "
        + parts(n, "id IN (SELECT id FROM t WHERE llm_filter('q#', x))", " AND ")
    ),
    "NOT IN": lambda n: (
        "SELECT id FROM t WHERE "
        + parts(n, "id NOT IN (SELECT id FROM t WHERE llm_filter('q#', x))", " AND ")
    ),
    "UNION ALL": lambda n: parts(n, "SELECT id FROM t WHERE llm_filter('q#', x)", " UNION ALL "),
    "UNION": lambda n: parts(n, "SELECT id FROM t WHERE llm_filter('q#', x)", " UNION "),
    "VALUES": lambda n: (
        "SELECT v.a FROM (VALUES "
        + parts(n, "(#, 'x#')", ", ")
        + ") v(a, b) WHERE llm_filter('q', v.b)"
    ),
    "a CTE": lambda n: (
        "WITH c AS (SELECT id, x FROM t WHERE llm_filter('q', x)) "
        "SELECT a.id FROM c a " + parts(n, "LEFT JOIN c c# ON c#.id = a.id")
    ),
    "CTEs": lambda n: (
        "WITH c AS (SELECT id, x FROM t), "
        + ", ".join(
            f"c{i} AS (SELECT id, x FROM c{i - 1 if i else ''} WHERE llm_filter('q{i}', x))"
            for i in range(n)
        )
        + f" SELECT id FROM c{n - 1}"
    ),
    "nested NOT IN": lambda n: (
        parts(n // 6, "SELECT id FROM t WHERE llm_filter('q#', x) AND id NOT IN (", "")
        + "SELECT id FROM t"
        + ")" * (n // 6)
    ),
}


@pytest.fixture(scope="module")
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(lambda request: True), cache=None)
    session.from_pydict({"id": [*range(8)], "x": [f"v{i}" for i in range(8)]}, name="t")
    return session


def seconds_of(work: Callable[[], object]) -> float:
    """The least of all tries."""
    return least_seconds(work, 0.0)


def count_calls(work: Callable[[], object]) -> int:
    """The calls and returns of Python functions in all threads: no other program changes them."""
    events = itertools.count()

    def count(*_: object) -> None:
        next(events)

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return next(events)


@pytest.mark.parametrize("shape", long_after(4, SHAPES))
def test_planning_time_is_linear(session: bf.Session, shape: str) -> None:
    """The time over DataFusion's own, whose optimizer takes four times as long for twice the inner
    joins."""

    def over(n: int) -> float:
        frames = [session.sql(SHAPES[shape](n)) for _ in range(TRIES)]
        assert all(frame.prepared.reason is None for frame in frames)
        waiting = iter([session.sql(SHAPES[shape](n)) for _ in range(TRIES)])
        whole = seconds_of(lambda: next(waiting).prepared)
        assert whole < SECONDS
        return whole - seconds_of(partial(DataFrame.optimized_logical_plan, frames[0]))

    growth = OF_COLUMNS.get(shape, GROWTH)
    # Other programs add to a time: one of three comparisons that holds is enough.
    ratios = (over(64) / max(IMMEASURABLE_SECONDS, over(32)) for _ in range(TRIES))
    assert any(ratio <= growth for ratio in ratios)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_types_of_calls_take_linear_time(session: bf.Session, shape: str) -> None:
    half, whole = (count_calls(partial(session.sql, SHAPES[shape](n))) for n in (32, 64))
    assert whole <= GROWTH * half
