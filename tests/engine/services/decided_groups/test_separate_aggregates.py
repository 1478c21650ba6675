"""Aggregates of which each needs few answers, but not the same ones: each ends its questions early.
Rows are compared with plain SQL."""

from __future__ import annotations

import random

import pytest
from amounts import long_after
from grouped_tables import grouped_table
from scripts import Counted, both_ways, unordered

import blendfusion as bf

N = 60
F = "llm_filter('f', x)"


def _script(call: bf.Request) -> bool:
    """Every other row of each of three groups passes, from the second one."""
    return int(call.values[0][1:]) // 3 % 2 == 1


@pytest.fixture
def sessions() -> tuple[Counted, Counted]:
    columns: dict[str, list[object]] = {
        "id": [*range(N)],
        "k": [None if i % 3 == 2 else i % 3 for i in range(N)],
        "x": [f"v{i:02}" for i in range(N)],
    }
    return both_ways(columns, _script)


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        (f"SELECT k, count(*) AS n, bool_or({F}) AS v FROM t GROUP BY k", 6),
        (f"SELECT k, bool_or({F}) AS v, avg(id) AS a, count(*) AS n FROM t GROUP BY k", 6),
        (f"SELECT k, bool_or({F}) AS v, bool_and({F}) AS w FROM t GROUP BY k", 6),
        (f"SELECT count(*) AS n, bool_or({F}) AS v FROM t", 4),
        (f"SELECT k, min(id) FILTER (WHERE {F}) AS a, max(id) FILTER (WHERE {F}) AS b FROM t "
         "GROUP BY k", 9),
        (f"SELECT k, min(id) AS a, max(id) AS b FROM t WHERE {F} GROUP BY k", 9),
        (f"SELECT min(id) AS a, max(id) AS b FROM t WHERE {F}", 5),
        (f"SELECT k, max(id) AS a, first_value(x ORDER BY id DESC) AS b, min(id) AS c FROM t "
         f"WHERE {F} GROUP BY k", 9),
        (f"SELECT k, count(*) AS n, bool_or({F}) AS v FROM t GROUP BY k HAVING bool_or({F})", 6),
        # One of them needs all answers, or the rows of all groups.
        (f"SELECT k, count(*) AS n, bool_or({F}) AS v, sum(CASE WHEN {F} THEN id END) AS s FROM t "
         "GROUP BY k", N),
        (f"SELECT k, max(id) AS n, count(*) AS v FROM t WHERE {F} GROUP BY k", N),
        (f"SELECT k, count(*) AS n, bool_or({F}) AS v FROM t GROUP BY ROLLUP (k)", N),
        # The rows are read once.
        (f"SELECT k, count(*) AS n, bool_or({F}) AS v FROM (SELECT * FROM t WHERE random() < 2) "
         "GROUP BY k", 6),
    ],
)  # fmt: skip
def test_each_ends_its_questions(sessions: tuple[Counted, Counted], sql: str, asked: int) -> None:
    planned, plain = sessions
    assert planned.session.sql(sql).prepared.reason is None
    assert planned.asked(sql) == asked
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


@pytest.mark.parametrize("number", long_after(3, range(12)))
def test_random_queries(number: int) -> None:
    source = random.Random(number)
    planned, plain = both_ways(grouped_table(source, groups=5, floats=[0.5, float("nan")]))
    conditions = [F, f"NOT {F}", f"n > 0 AND {F}", f"{F} OR n = 1", "llm_filter('g', x)"]
    for _ in range(12):
        cheap = ["count(*)", "max(n)", "min(id)", "sum(n)", "count(d)", "max(x)"]
        cheap += ["first_value(x ORDER BY n, id)", "last_value(n ORDER BY id)"]
        asking = [
            *(f"{name}({source.choice(conditions)})" for name in ("bool_or", "bool_and")),
            f"min(id) FILTER (WHERE {source.choice(conditions)})",
            f"max(CASE WHEN {source.choice(conditions)} THEN n END)",
            f"first_value(n ORDER BY d, id) FILTER (WHERE {source.choice(conditions)})",
            f"count(*) FILTER (WHERE {source.choice(conditions)})",
        ]
        chosen = source.sample(cheap, 2) + source.sample(asking, source.choice([0, 1, 2]))
        source.shuffle(chosen)
        where = source.choice(["", "", f" WHERE {F}", " WHERE n > 0"])
        shown = ", ".join(f"{e} AS c{i}" for i, e in enumerate(chosen))
        keys = source.choice([[], ["k"], ["k", "n"], ["d"]])
        listed = ", ".join(keys)
        sql = f"SELECT {', '.join([*keys, shown])} FROM t{where}"
        if keys:
            sql += f" GROUP BY {listed}"
            sql += source.choice(["", " HAVING count(*) > 1", f" HAVING bool_or({F})"])
            sql = source.choice(
                [sql, f"SELECT t.id, g.* FROM t LEFT JOIN ({sql}) g ON t.{keys[0]} = g.{keys[0]}"]
            )
        assert planned.session.sql(sql).prepared.reason is None, sql
        planned.asked(sql)
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql)), sql
