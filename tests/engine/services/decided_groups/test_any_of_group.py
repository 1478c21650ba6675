"""Whether any row of a group is so, or every row, and the first of its rows that meet a condition:
each group is asked until one row decides it."""

from __future__ import annotations

import random

import pytest
from grouped_tables import grouped_table
from scripts import Counted, both_ways, unordered

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
    return both_ways(columns, _script)


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
        # The first or last of the rows that meet a condition.
        (f"SELECT k, min(id) FILTER (WHERE {F}) AS v FROM t GROUP BY k", 12 + 1 + 3 * 2),
        (f"SELECT k, max(id) FILTER (WHERE {F}) AS v FROM t GROUP BY k", 12 + 1 + 3),
        (f"SELECT k, min(id) FILTER (WHERE NOT {F}) AS v FROM t GROUP BY k", 1 + 12 + 3),
        (f"SELECT k, min(CASE WHEN {F} THEN id END) AS v FROM t GROUP BY k", 12 + 1 + 3 * 2),
        (f"SELECT k, max(id) FILTER (WHERE id < 10 AND {F}) AS v FROM t GROUP BY k", 2 + 1 + 3),
        (f"SELECT k, max(id) FILTER (WHERE id < 10) AS v FROM t WHERE {F} GROUP BY k", 16),
        (f"SELECT k, bool_or({F}) FILTER (WHERE id < 10) AS v FROM t GROUP BY k", 2 + 1 + 3),
        (f"SELECT k, any_value(id) FILTER (WHERE {F}) AS v FROM t GROUP BY k", 19),
        (f"SELECT k, any_value(CASE WHEN {F} THEN 7 END) AS v FROM t GROUP BY k", 12 + 1 + 3),
        (f"SELECT k, first_value(id ORDER BY id) FILTER (WHERE {F}) AS v FROM t GROUP BY k", 19),
        (f"SELECT k, last_value(id ORDER BY id) FILTER (WHERE {F}) AS v FROM t GROUP BY k", 16),
        (f"SELECT k, last_value(id ORDER BY id) AS v FROM t WHERE {F} GROUP BY k", 16),
        # The same of all rows.
        (f"SELECT bool_or({F}) AS v FROM t", 2),
        (f"SELECT bool_and({F}) AS v FROM t", 1),
        (f"SELECT max(id) FILTER (WHERE {F}) AS v FROM t", 1),
        (f"SELECT min(CASE WHEN {F} THEN id END) AS v FROM t", 2),
        (f"SELECT first_value(id ORDER BY id) FILTER (WHERE {F}) AS v FROM t", 2),
        (f"SELECT last_value(id ORDER BY id) AS v FROM t WHERE {F}", 1),
        (f"SELECT max(id) FILTER (WHERE {F}) AS v FROM t WHERE id > 99", 0),
        (f"SELECT k, max(CASE WHEN {F} THEN id ELSE 0 END) AS v FROM t GROUP BY k", 15),
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
        f"SELECT k, bool_or({F}) AS v, count({F}) AS n FROM t GROUP BY k",
        f"SELECT k, bool_or({F}) AS v FROM t GROUP BY ROLLUP (k)",
        f"SELECT {F} AS k, bool_or({F}) AS v FROM t GROUP BY 1",
        f"SELECT k, sum(id) FILTER (WHERE {F}) AS v FROM t GROUP BY k",
        f"SELECT k, count(id) FILTER (WHERE {F}) AS v FROM t GROUP BY k",
        f"SELECT k, min(id) FILTER (WHERE {F}) AS v FROM t GROUP BY CUBE (k)",
        f"SELECT k, min(CASE WHEN {F} THEN id ELSE -id END) AS v FROM t GROUP BY k",
        f"SELECT avg(id) FILTER (WHERE {F}) AS v, sum(n) FILTER (WHERE {F}) AS m FROM t",
    ],
)
def test_others_need_every_answer(sessions: tuple[Counted, Counted], sql: str) -> None:
    planned, plain = sessions
    assert planned.asked(sql) == N
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


CONDITIONS = [F, f"NOT {F}", f"n > 1 AND {F}", f"n = 2 OR {F}", f"{F} IS NULL", f"{F} IS NOT TRUE"]


@pytest.mark.parametrize("number", range(10))
def test_random_tables(number: int) -> None:
    """NULLs, groups without a row that meets the condition, equal values, texts that repeat."""
    source = random.Random(number)
    planned, plain = both_ways(
        grouped_table(source, groups=9, floats=[0.5, 1.5, float("nan")]), _script
    )
    for _ in range(12):
        condition, other = source.choices(CONDITIONS, k=2)
        value = source.choice(["id", "n", "n + 1", "x", "d"])
        order = f"{source.choice(['n', 'd', 'x'])} {source.choice(['', 'DESC', 'NULLS FIRST'])}"
        measure = source.choice(
            [
                f"{source.choice(['min', 'max'])}({value}) FILTER (WHERE {condition})",
                f"{source.choice(['min', 'max'])}(CASE WHEN {condition} THEN {value} END)",
                f"{source.choice(['bool_or', 'bool_and'])}({other}) FILTER (WHERE {condition})",
                f"{source.choice(['bool_or', 'bool_and'])}({other})",
                f"max(CASE WHEN {other} THEN 1 ELSE 0 END) FILTER (WHERE {condition})",
                f"first_value({value} ORDER BY {order}, id) FILTER (WHERE {condition})",
                f"last_value({value} ORDER BY {order}, id) FILTER (WHERE {condition})",
                f"last_value({value} ORDER BY {order}, id)",
            ]
        )
        where = source.choice(["", f" WHERE {source.choice(CONDITIONS)}"])
        sql = f"SELECT {measure} AS v FROM t{where}"
        if source.random() < 0.7:
            sql = f"SELECT k, {measure} AS v FROM t{where} GROUP BY k"
        assert planned.session.sql(sql).prepared.reason is None, sql
        planned.asked(sql)
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql)), sql


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT k, max(CASE WHEN n > 0 AND {F} THEN 10 / n END) AS v FROM t GROUP BY k",
        f"SELECT max(CASE WHEN n > 0 AND {F} THEN 10 / n END) AS v FROM t",
        f"SELECT max(10 / n) AS v FROM t WHERE {F} AND n > 0",
    ],
)
def test_a_value_that_fails_elsewhere(sessions: tuple[Counted, Counted], sql: str) -> None:
    planned, plain = sessions
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
