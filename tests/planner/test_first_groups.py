"""Under a limit of groups, only rows of the groups that it keeps are asked about."""

from __future__ import annotations

import random

import pytest
from amounts import long_after
from grouped_tables import grouped_table
from scripts import Counted, both_ways, hashed, unordered

N = 60
S = "llm_score('s', x)"
T: dict[str, list[object]] = {
    "id": [*range(N)],
    "k": [None if i % 6 == 5 else i % 6 for i in range(N)],  # ten rows each
    "big": [min(i // 6, 5) for i in range(N)],  # six rows each, 30 in the last
    "x": [f"v{i}" for i in range(N)],
}


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        (f"SELECT k, avg({S}) AS s FROM t GROUP BY k ORDER BY k DESC LIMIT 2", 20),
        (f"SELECT k, avg({S}) AS s FROM t GROUP BY k ORDER BY k NULLS FIRST LIMIT 1 OFFSET 1", 20),
        (f"SELECT k, avg({S}) AS s, sum(id) AS i FROM t GROUP BY k ORDER BY max(id) DESC LIMIT 1",
         10),
        (f"SELECT big, count(*) AS n, avg({S}) AS s FROM t GROUP BY big ORDER BY n DESC LIMIT 1",
         30),
        (f"SELECT big, avg({S}) AS s FROM t GROUP BY big ORDER BY count(*) DESC, s, big LIMIT 1",
         30),
        (f"SELECT big, avg({S}) AS s FROM t GROUP BY big ORDER BY count(*), s, big LIMIT 1", 23),
        (f"SELECT k + 1 AS j, avg({S}) AS s FROM t GROUP BY k + 1 ORDER BY j LIMIT 1", 10),
        (f"SELECT k, big, avg({S}) AS s FROM t GROUP BY k, big ORDER BY big, k LIMIT 2", 2),
        (f"SELECT k, avg({S}) AS s FROM t GROUP BY k HAVING min(id) > 1 ORDER BY k LIMIT 1", 10),
        ("SELECT k, count(*) FILTER (WHERE llm_filter('f', x)) AS n FROM t GROUP BY k "
         "ORDER BY k LIMIT 1", 10),
        (f"SELECT k, avg({S}) AS s FROM t WHERE id < 30 GROUP BY k ORDER BY k LIMIT 1", 5),
        (f"SELECT t.k, avg({S}) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k ORDER BY t.k LIMIT 1",
         10),
        (f"SELECT k, llm_map('m', first_value(x ORDER BY id)) AS m, avg({S}) AS s FROM t "
         "GROUP BY k ORDER BY k LIMIT 1", 11),
        # An answer decides which groups there are, or come first.
        (f"SELECT k, avg({S}) AS s FROM t GROUP BY k ORDER BY s, k LIMIT 1", 53),
        (f"SELECT k, avg({S}) AS s FROM t GROUP BY k HAVING avg({S}) > 1 ORDER BY k LIMIT 1", 10),
        (f"SELECT k, avg({S}) AS s FROM t GROUP BY k ORDER BY random() LIMIT 1", N),
        (f"SELECT k, avg({S}) AS s FROM t GROUP BY ROLLUP (k) ORDER BY k LIMIT 1", N),
    ],
)  # fmt: skip
def test_the_first_groups_alone_are_asked_about(sql: str, asked: int) -> None:
    planned, plain = (
        Counted(hashed, planner=p).add("t", T).add("u", {"k": [1, 2, 3]}) for p in (True, False)
    )
    assert planned.session.sql(sql).prepared.reason is None
    assert planned.asked(sql) == asked
    if "random" not in sql:
        assert planned.rows(sql) == plain.rows(sql)


F = "llm_filter('f', x)"


@pytest.mark.parametrize(
    ("sql", "most"),
    [  # of ten rows each, one of the first four passes
        (f"SELECT DISTINCT k FROM t WHERE {F} ORDER BY k LIMIT 2", 6),
        (f"SELECT DISTINCT k FROM t WHERE {F} ORDER BY k DESC LIMIT 1 OFFSET 1", 6),
        (f"SELECT DISTINCT k, big FROM t WHERE {F} ORDER BY big, k NULLS FIRST LIMIT 2", 6),
        (f"SELECT k FROM t WHERE {F} GROUP BY k ORDER BY k LIMIT 1", 4),
        (
            f"SELECT k + 1 AS j, count(*) AS n FROM t WHERE {F} GROUP BY k + 1 ORDER BY j LIMIT 1",
            10,
        ),
        (f"SELECT k, avg(id) AS n FROM t WHERE {F} GROUP BY k ORDER BY k LIMIT 2", 20),
        (f"SELECT k, avg({S}) AS n FROM t WHERE {F} GROUP BY k ORDER BY k LIMIT 1", 20),
        (f"SELECT k, max(id) AS n FROM t WHERE {F} GROUP BY k ORDER BY k DESC LIMIT 2", 22),
        (f"SELECT DISTINCT ON (k) k, id FROM t WHERE {F} ORDER BY k, id LIMIT 2", 8),
        (f"SELECT k, max(id) FILTER (WHERE {F}) AS n FROM t GROUP BY k ORDER BY k LIMIT 2", 6),
        (f"SELECT k, bool_or({F}) AS v FROM t GROUP BY k ORDER BY k LIMIT 2", 6),
    ],
)
def test_the_first_groups_of_rows_that_a_model_chooses(sql: str, most: int) -> None:
    planned, plain = both_ways(T)
    assert planned.session.sql(sql).prepared.reason is None
    assert planned.asked(sql) <= most
    assert planned.rows(sql) == plain.rows(sql)


@pytest.mark.parametrize("number", long_after(3, range(8)))
def test_random_tables(number: int) -> None:
    source = random.Random(number)
    planned, plain = both_ways(
        grouped_table(
            source, groups=20, floats=[0.5, float("nan")], texts=90, sizes=[0, 1, 60, 200]
        )
    )
    where = [F, f"{F} OR id % 7 = 0", f"{F} AND llm_filter('g', x)", f"NOT {F} AND id > 5"]
    for _ in range(10):
        keys = source.choice([["k"], ["k"], ["k", "d"], ["k % 3", "d"], ["-k"]])
        measures = source.sample(
            ["count(*)", "max(id)", f"sum({S})", "count(d)"], source.choice([0, 1, 2])
        )
        ways = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
        order = [f"{i + 1}{source.choice(ways)}" for i in range(len(keys))]
        source.shuffle(order)
        shown = ", ".join(f"{e} AS c{i}" for i, e in enumerate([*keys, *measures]))
        limit = f"LIMIT {source.choice([1, 2, 5, 100])}{source.choice(['', ' OFFSET 2'])}"
        sql = (
            f"SELECT {shown} FROM t WHERE {source.choice(where)} GROUP BY {', '.join(keys)} "
            f"ORDER BY {', '.join(order)} {limit}"
        )
        assert planned.session.sql(sql).prepared.reason is None, sql
        planned.asked(sql)
        assert planned.rows(sql) == plain.rows(sql), sql


@pytest.mark.parametrize("having", ["", " HAVING count(*) > 9"])
def test_any_groups_of_a_limit(having: str) -> None:
    planned, plain = both_ways(T)
    sql = f"SELECT k, avg({S}) AS s FROM t GROUP BY k{having}"
    assert planned.asked(f"{sql} LIMIT 2") == 20
    rows = planned.rows(f"{sql} LIMIT 2")
    assert len(rows) == 2
    assert {*rows} <= {*plain.rows(sql)}


def test_a_random_order_samples_the_rows_that_pass() -> None:
    db = Counted(lambda call: int(call.values[0][1:]) % 2 == 0).add("t", T)
    rows = db.rows("SELECT id FROM t WHERE llm_filter('f', x) ORDER BY random() LIMIT 2")
    asked = len(db.model.calls)
    assert len(rows) == 2
    assert all(row[0] % 2 == 0 for row in rows)  # type: ignore[operator]
    assert asked < N / 2
    whole = db.rows("SELECT id FROM t WHERE llm_filter('f', x) ORDER BY random()")
    assert unordered(whole) == unordered([(i,) for i in range(0, N, 2)])
