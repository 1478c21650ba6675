"""An answer by which the rows of partitions are ordered behind other keys, where only the first one
is read: it is asked for among rows that are equal in these keys. Rows are compared with plain SQL."""

from __future__ import annotations

import random

import pytest
from grouped_tables import grouped_table
from scripts import Counted, both_ways, unordered

N = 60
F, S = "llm_filter('f', x)", "llm_score('s', x)"


@pytest.fixture
def sessions() -> tuple[Counted, Counted]:
    columns: dict[str, list[object]] = {
        "id": [*range(N)],
        "k": [None if i % 4 == 3 else i % 4 for i in range(N)],
        "n": [i // 12 for i in range(N)],  # three rows of each k
        "x": [f"v{i}" for i in range(N)],
        "y": [f"v{i // 12}{i % 4}" for i in range(N)],  # the same in each k and n
    }
    return both_ways(columns)


WINDOW = f"first_value(id) OVER (PARTITION BY k ORDER BY n, {S}, id"


@pytest.mark.parametrize(
    ("sql", "least"),
    [
        (f"SELECT id, {WINDOW}) AS v FROM t", 12),
        (f"SELECT DISTINCT k, {WINDOW}) AS v FROM t", 12),
        (f"SELECT id, {WINDOW} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS v FROM t", 12),
        (f"SELECT id, {WINDOW}) AS v, first_value(x) OVER (PARTITION BY k ORDER BY n, {S}, id) AS w "
         "FROM t", 12),
        (f"SELECT first_value(id) OVER (ORDER BY n DESC, {S}, id) AS v FROM t", 12),
        (f"SELECT k, first_value(id ORDER BY n, {S}, id) AS v FROM t GROUP BY k", 12),
        (f"SELECT k, last_value(id ORDER BY n, {S}, id) AS v FROM t GROUP BY k", 12),
        (f"SELECT first_value(id ORDER BY n, {S}, id) AS v FROM t", 12),
        (f"SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, n, {S}, id", 12),
        (f"SELECT DISTINCT ON (k) k, id, {S} AS v FROM t ORDER BY k, n, {S}, id", 12),
        (f"SELECT DISTINCT ON (k) k, id, {S} + n AS v FROM t ORDER BY k, n, {S}, id", 12),
        (f"SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, id, {S}", 0),
    ],
)  # fmt: skip
def test_only_ties_of_the_first_rows_are_asked(
    sessions: tuple[Counted, Counted], sql: str, least: int
) -> None:
    planned, plain = sessions
    assert planned.session.sql(sql).prepared.reason is None
    assert planned.asked(sql) == least
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


@pytest.mark.parametrize(
    ("sql", "least"),
    [
        ("SELECT id, first_value(id) OVER (PARTITION BY k ORDER BY n, {S}, id) AS v FROM t", 0),
        ("SELECT id, row_number() OVER (PARTITION BY k ORDER BY n, {S}, id) AS v FROM t", 0),
        ("SELECT id, rank() OVER (PARTITION BY k ORDER BY n, {S}) AS v FROM t", 0),
        ("SELECT k, first_value(id ORDER BY n, {S}, id) AS v FROM t GROUP BY k", 0),
        ("SELECT k, n, count(*) AS v FROM t GROUP BY k, n, {S}", 0),
        ("SELECT id FROM t ORDER BY k, n, {S}, id LIMIT 40", 0),
        ("SELECT id FROM t ORDER BY k, n, CASE WHEN id < 99 THEN {S} END, id LIMIT 40", 14),
        ("SELECT id FROM t ORDER BY n, {S}, id LIMIT 5 OFFSET 2", 4),
        ("SELECT id FROM t ORDER BY y, {S}, id LIMIT 40", 0),
    ],
)
def test_rows_about_which_the_questions_are_the_same_are_tied_whatever_the_answer(
    sessions: tuple[Counted, Counted], sql: str, least: int
) -> None:
    planned, plain = sessions
    sql = sql.format(S="llm_score('s', y)")
    assert planned.asked(sql) == least
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


def test_predicates_are_asked_in_the_order_of_the_first_keys(
    sessions: tuple[Counted, Counted],
) -> None:
    planned, plain = sessions
    sql = f"SELECT DISTINCT ON (k) k, id, {S} AS v FROM t WHERE {F} ORDER BY k, n, {S}, id"
    assert planned.asked(sql) <= 30  # of 60, and then of those that pass
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT id, {WINDOW}) AS v, {S} AS s FROM t",
        f"SELECT id, {WINDOW} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM t",
        f"SELECT id, {WINDOW}) AS v, rank() OVER (PARTITION BY k ORDER BY n, {S}) AS r FROM t",
        f"SELECT id, last_value(id) OVER (PARTITION BY k ORDER BY n, {S}, id) AS v FROM t",
        f"SELECT k, first_value(id ORDER BY n, {S}, id) AS v, avg({S}) AS w FROM t GROUP BY k",
        f"SELECT k, first_value(id ORDER BY {S}, id) AS v FROM t GROUP BY k",
        f"SELECT first_value(id ORDER BY n, {S}, id) AS v FROM t GROUP BY ROLLUP (k)",
    ],
)
def test_others_need_every_answer(sessions: tuple[Counted, Counted], sql: str) -> None:
    planned, plain = sessions
    assert planned.asked(sql) == N
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


@pytest.mark.parametrize("number", range(10))
def test_random_queries(number: int) -> None:
    source = random.Random(number)
    planned, plain = both_ways(grouped_table(source, groups=5, floats=[0.5, 1.5]))
    for _ in range(10):
        keys = source.choice([["n"], ["n", "d"], ["d + 1"], ["id % 3", "n"]])
        answer = source.choice([S, F, f"CASE WHEN n = 1 THEN {S} END", f"{S} + n"])
        ways = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
        order = ", ".join(f"{key}{source.choice(ways)}" for key in [*keys, answer])
        value = source.choice(["id", "x", "d", "llm_map('m', x)", S])
        where = source.choice(["", f" WHERE {F}", " WHERE n > 0", f" WHERE {F} OR n = 1"])
        name = source.choice(["first_value", "last_value"])
        sql = source.choice(
            [
                f"SELECT DISTINCT ON (k) k, id, {value} AS v FROM t{where} ORDER BY k, {order}, id",
                f"SELECT k, {name}({value} ORDER BY {order}, id) AS v FROM t{where} GROUP BY k",
                f"SELECT {name}({value} ORDER BY {order}, id) FILTER (WHERE n > 0) AS v FROM t{where}",
                f"SELECT k, {name}(id ORDER BY {order}, id) FILTER (WHERE n > 0) AS v FROM t{where} "
                "GROUP BY k",
                f"SELECT id, first_value({value}) OVER (PARTITION BY k ORDER BY {order}, id) AS v "
                f"FROM t{where}",
            ]
        )
        assert planned.session.sql(sql).prepared.reason is None, sql
        planned.asked(sql)
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql)), sql
