"""Relations that no equality links: reductions take no more time than the query itself."""

from __future__ import annotations

import time

import pytest
from time_limit import within

import blendfusion as bf

ROWS = 110
TIMES, SECONDS = 3.0, 1.0
"""What a query may take: so many times as long as without the planner, and so long besides."""


def chosen(word: str) -> str:
    return f"(SELECT id FROM t WHERE llm_filter('{word}', x)) {word}"


A, B, C, D = map(chosen, "abcd")

QUERIES = {
    "three by OR": f"SELECT count(*) FROM t p, {A}, {B}, {C} "
    "WHERE p.id = a.id OR p.id = b.id OR p.id = c.id",
    "two of three": f"SELECT p.id, count(*) FROM t p, {A}, {B}, {C} WHERE p.id = a.id AND p.id = b.id "
    "OR p.id = a.id AND p.id = c.id OR p.id = b.id AND p.id = c.id GROUP BY p.id",
    "a chain by <": f"SELECT count(*) FROM t p, {A}, {B}, {C} "
    "WHERE p.id < a.id AND a.id < b.id AND b.id < c.id",
    "a sum": f"SELECT count(*) FROM {A}, t b, {C} WHERE a.id + b.id = c.id",
    "sums by <": f"SELECT count(*) FROM {A}, {B}, t c WHERE a.id + b.id < c.id",
    "EXISTS over a product": f"SELECT count(*) FROM {A} "
    "WHERE EXISTS (SELECT 1 FROM t b, t c WHERE a.id + b.id < c.id)",
    "a left join": f"SELECT count(*) FROM (SELECT b.id AS i, c.id AS j FROM t b CROSS JOIN t c) z "
    f"LEFT JOIN {A} ON a.id = z.i OR a.id = z.j",
    "a product and a key": f"SELECT count(*) FROM {A}, t p, {B}, t r WHERE a.id = p.id AND b.id <> r.id",
    "NOT EXISTS": f"SELECT count(*) FROM {A} WHERE NOT EXISTS "
    "(SELECT 1 FROM t b, t c WHERE b.id * c.id = a.id AND llm_filter('b', b.x))",
}


def run(sql: str, **options: bool) -> tuple[object, int, float]:
    """The rows, the values asked, and the CPU seconds."""
    model = bf.ScriptedModel(lambda request: int((request.values[0] or "")[1:]) % 2 == 0)
    with bf.connect(model, cache=None, progress="off", **options) as session:  # type: ignore[arg-type]
        session.from_pydict({"id": [*range(ROWS)], "x": [f"v{i}" for i in range(ROWS)]}, name="t")
        frame = session.sql(sql)
        _ = frame.schema()
        start = time.process_time()
        rows = sorted(map(repr, frame.to_pylist()))
        return rows, frame.trace.usage.values, time.process_time() - start


@pytest.mark.parametrize("name", QUERIES)
def test_no_reduction_reads_a_product(name: str) -> None:
    rows, values, seconds = run(QUERIES[name], planner=False)
    with within(60, QUERIES[name]):
        found = run(QUERIES[name])
    assert found[0] == rows
    assert found[1] <= values
    assert found[2] <= TIMES * seconds + SECONDS
