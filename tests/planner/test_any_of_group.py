"""Whether any row of a group is so, or every row: each group is asked until one row decides it."""

from __future__ import annotations

import random

import pytest
from scripts import Counted, unordered

import blendfusion as bf

N = 60
F = "llm_filter('f', x)"


def _script(call: bf.Request) -> bool:
    """No row of group 0 is so, all rows of group 1, and every other row of the others."""
    number = int(call.values[0][1:])
    return [False, True][number % 5] if number % 5 < 2 else number // 5 % 2 == 1


@pytest.fixture
def sessions() -> tuple[Counted, Counted]:
    source = random.Random(5)
    columns: dict[str, list[object]] = {
        "id": [*range(N)],
        "k": [None if i % 5 == 4 else i % 5 for i in range(N)],
        "n": [None if source.random() < 0.3 else i % 4 for i in range(N)],
        "x": [f"v{i}" for i in range(N)],
        "y": [None if i % 5 == 3 else f"v{i}" for i in range(N)],
    }
    planned, plain = Counted(_script), Counted(_script, planner=False)
    return planned.add("t", columns), plain.add("t", columns)


@pytest.mark.parametrize(
    ("sql", "least"),
    [  # twelve rows each: groups 2 to 4 are decided by the first two rows in the order of texts
        (f"SELECT k, bool_or({F}) AS v FROM t GROUP BY k", 12 + 1 + 3 * 1),
        (f"SELECT k, bool_and({F}) AS v FROM t GROUP BY k", 1 + 12 + 3 * 1),
        ("SELECT k, bool_or(llm_filter('f', y)) AS v FROM t GROUP BY k", 12 + 1 + 2 * 1),
        (f"SELECT k, max(CASE WHEN {F} THEN 1 ELSE 0 END) AS v FROM t GROUP BY k", 12 + 1 + 3),
        (f"SELECT k, min(CASE WHEN {F} THEN 1 ELSE 0 END) AS v FROM t GROUP BY k", 1 + 12 + 3),
        (f"SELECT k, max(CASE WHEN {F} THEN 7 END) AS v FROM t GROUP BY k", 12 + 1 + 3),
        (f"SELECT k, bool_or(NOT {F}) AS v FROM t GROUP BY k", 1 + 12 + 3),
        (f"SELECT k, bool_or({F}) AS v FROM t WHERE id < 5 GROUP BY k", 5),
        (f"SELECT k + 1 AS j, bool_or({F}) AS v FROM t GROUP BY k + 1 HAVING bool_or({F})", 16),
        (f"SELECT k, bool_or(id > 54 OR {F}) AS v FROM t GROUP BY k", 0),
        (f"SELECT k, bool_and(n > 9 AND {F}) AS v FROM t GROUP BY k", 0),
    ],
)
def test_each_group_is_asked_until_it_is_decided(
    sessions: tuple[Counted, Counted], sql: str, least: int
) -> None:
    planned, plain = sessions
    assert planned.session.sql(sql).prepared.reason is None
    # Behind four rows that decide nothing, more than one comes at once.
    assert least <= planned.asked(sql) <= 1.25 * least + 5
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT k, bool_or({F}) AS v, count(*) AS n FROM t GROUP BY k",
        f"SELECT k, max(CASE WHEN {F} THEN id ELSE 0 END) AS v FROM t GROUP BY k",
        f"SELECT k, bool_or({F}) AS v FROM t GROUP BY ROLLUP (k)",
        f"SELECT {F} AS k, bool_or({F}) AS v FROM t GROUP BY 1",
    ],
)
def test_others_need_every_answer(sessions: tuple[Counted, Counted], sql: str) -> None:
    planned, plain = sessions
    assert planned.asked(sql) == N
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
