"""The first rows of each group among those that a model chooses: each group is asked in order, until
it has them. The values are counted in Python, rows compared with plain SQL."""

from __future__ import annotations

import random

import pytest
from scripts import Counted, both_ways, unordered

import blendfusion as bf

N = 60


def _table(source: random.Random) -> dict[str, list[object]]:
    return {
        "id": [*range(N)],
        "k": [source.choice([None, 1, 2, 3, 4]) for _ in range(N)],
        "d": [source.choice([None, 1.5, float("nan"), 0.5]) for _ in range(N)],
        "x": [source.choice([None, *(f"v{j}" for j in range(40))]) for _ in range(N)],
    }


def _sessions(table: dict[str, list[object]]) -> tuple[Counted, Counted]:
    return both_ways(table)


def _least(table: dict[str, list[object]], passing: set[object], count: int, *, down: bool) -> int:
    """The texts that are asked one row of a group after the other."""
    needed: set[object] = set()
    missing: dict[object, int] = {}
    for i in sorted(range(N), reverse=down):
        k, x = table["k"][i], table["x"][i]
        if missing.setdefault(k, count) and x is not None:
            needed.add(x)
            missing[k] -= x in passing
    return len(needed)


F = "llm_filter('f', x)"


@pytest.mark.parametrize("number", range(12))
def test_random_tables(number: int) -> None:
    source = random.Random(number)
    table = _table(source)
    planned, plain = _sessions(table)
    passing = {x for (x,) in plain.rows(f"SELECT x FROM t WHERE {F}")}
    count, down = source.choice([1, 1, 2, 5]), source.random() < 0.5
    window = f"row_number() OVER (PARTITION BY k ORDER BY id {'DESC' if down else 'ASC'})"
    queries = [f"SELECT id, k, {window} AS n FROM t WHERE {F} QUALIFY n <= {count}"]
    if count == 1:
        extreme, order = ("max", "DESC") if down else ("min", "ASC")
        queries += [
            f"SELECT k, {extreme}(id) AS m FROM t WHERE {F} GROUP BY k",
            f"SELECT DISTINCT ON (k) k, id FROM t WHERE {F} ORDER BY k, id {order}",
            f"SELECT k, first_value(id ORDER BY id {order}) AS m FROM t WHERE {F} GROUP BY k",
        ]
    for sql in queries:
        assert planned.session.sql(sql).prepared.reason is None
        least = _least(table, passing, count, down=down)
        # Behind four rows that fail, more than one comes at once.
        assert least <= planned.asked(sql) <= 1.25 * least, sql
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql)), sql


def _even(call: bf.Request) -> bool:
    """Every other row passes, from the second one of each of three groups."""
    return int(call.values[0][1:]) // 3 % 2 == 1


@pytest.fixture
def db() -> Counted:
    columns: dict[str, list[object]] = {
        "id": [*range(N)],
        "k": [i % 3 for i in range(N)],
        "n": [None if i % 3 == 0 else i // 6 for i in range(N)],
        "x": [f"v{i}" for i in range(N)],
    }
    return Counted(_even).add("t", columns)


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        (f"SELECT id FROM t WHERE {F} QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1",
         6),
        (f"SELECT id FROM t WHERE {F} QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) <= 2",
         12),
        (f"SELECT id, rank() OVER (PARTITION BY k ORDER BY id) AS r FROM t WHERE {F} "
         "QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1", 6),
        (f"SELECT id FROM t WHERE {F} QUALIFY row_number() OVER (ORDER BY id) = 1", 4),
        (f"SELECT id FROM t WHERE {F} QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1 "
         "AND id > 0", 6),
        (f"SELECT k, max(id) AS m FROM t WHERE {F} GROUP BY k", 3),
        (f"SELECT k + 1 AS j, min(id * 2) AS m FROM t WHERE {F} GROUP BY k + 1", 6),
        (f"SELECT k, min(id) AS m FROM t WHERE {F} AND id > 2 GROUP BY k HAVING min(id) > 0", 3),
        (f"SELECT k, max(n) AS m FROM t WHERE {F} OR n IS NULL GROUP BY k", 4),
        (f"SELECT DISTINCT ON (k) k, id, llm_map('m', x) = 'a' AS m FROM t WHERE {F} ORDER BY k, id",
         9),
        ("SELECT t.k, max(t.id) AS m FROM t JOIN t u ON t.id = u.id WHERE llm_filter('f', u.x) "
         "GROUP BY t.k", 3),
        # Others need all rows that pass.
        (f"SELECT k, max(id) AS m, count(*) AS c FROM t WHERE {F} GROUP BY k", N),
        (f"SELECT k, max(id) AS m, avg(id) AS c FROM t WHERE {F} GROUP BY k", N),
        (f"SELECT id, count(*) OVER (PARTITION BY k) AS c FROM t WHERE {F} "
         "QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1", N),
        (f"SELECT id FROM t WHERE {F} QUALIFY rank() OVER (PARTITION BY k ORDER BY id) = 1", 6),
        (f"SELECT id FROM t WHERE {F} QUALIFY row_number() OVER (PARTITION BY k ORDER BY random()) "
         "= 1", N),
    ],
)  # fmt: skip
def test_each_group_is_asked_until_it_has_its_rows(db: Counted, sql: str, asked: int) -> None:
    assert db.session.sql(sql).prepared.reason is None
    assert db.asked(sql) == asked


def test_groups_continue_from_chunk_to_chunk(db: Counted) -> None:
    db.session.sql("SET blendfusion.chunk_rows = 7")
    sql = f"SELECT id FROM t WHERE {F} QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) <= 2"
    assert db.asked(sql) == 12
    assert unordered(db.rows(sql)) == unordered([(3,), (4,), (5,), (9,), (10,), (11,)])


def test_a_nan_is_a_value_like_others() -> None:
    table = _table(random.Random(3))
    planned, plain = _sessions(table)
    for sql in (
        f"SELECT DISTINCT d FROM t WHERE {F}",
        f"SELECT d, max(id) AS m FROM t WHERE {F} GROUP BY d",
    ):
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
