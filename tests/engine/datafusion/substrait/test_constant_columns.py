"""Columns that are constant below grouping sets and outer joins, and not above: DuckDB has the
rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from scripts import tuples, unordered

import blendfusion as bf

DRAWN = random.Random(7)
FEW = pa.table(
    {
        "id": range(40),
        "k": [DRAWN.choice([1, 2, 3, None]) for _ in range(40)],
        "n": [DRAWN.choice([4, 5, 6, None]) for _ in range(40)],
        "x": [DRAWN.choice("abc") for _ in range(40)],
    }
)
MANY = pa.table(
    {
        "k": [DRAWN.randrange(3) for _ in range(30_000)],
        "n": [DRAWN.randrange(3_000) for _ in range(30_000)],
        "x": ["a"] * 30_000,
    }
)
SOME = (
    "SELECT k, n FROM t WHERE k = 1{}",
    "SELECT k, n FROM t WHERE k = 1 AND n IN (5){}",
    "SELECT k, n FROM t WHERE n BETWEEN 4 AND 4{}",
    "SELECT 7 AS k, n FROM t WHERE id > 4{}",
    "SELECT k, 'one' AS n FROM t WHERE id > 4{}",
    "SELECT max(k) AS k, max(n) AS n FROM t WHERE id > 4{}",
    "SELECT k, n FROM t WHERE id = 9{}",
    "SELECT k, n FROM (SELECT * FROM t ORDER BY id LIMIT 1) q WHERE TRUE{}",
)
SETS = (
    "ROLLUP (k, n)",
    "CUBE (k, n)",
    "GROUPING SETS ((k, n), (n), ())",
    "GROUPING SETS ((n), (k))",
)
ENDS = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
ASKED = " AND llm_filter('q', x)"
PLAIN = " AND x <> 'a'"


def _above(rng: random.Random) -> str:
    """A relation of ``k``, ``n`` and ``c`` over ``{0}``, in which one of them may be constant."""
    word = rng.choice(["LEFT", "RIGHT", "FULL"])
    side = rng.choice(["l.id % 3 = 0", "l.id > 5"])
    rows = f"(SELECT id, k AS own FROM t l WHERE {side}) l"
    joined = rng.choice([f"{rows} {word} JOIN ({{0}}) q", f"({{0}}) q {word} JOIN {rows}"])
    return rng.choice(
        [
            f"SELECT k, n, count(*) AS c FROM ({{0}}) q GROUP BY {rng.choice(SETS)}",
            f"SELECT q.k, q.n, l.id AS c FROM {joined} ON q.k = l.own",
            f"SELECT q.k, q.n, l.id AS c FROM {joined} ON q.k = l.own",
        ]
    )


def _queries(count: int) -> Iterator[str]:
    rng = random.Random(55)
    for _ in range(count):
        rows = _above(rng).format(rng.choice(SOME))
        order = [f"{key}{rng.choice(ENDS)}" for key in rng.sample(["k", "n"], 2)]
        order = ", ".join([*order, f"c{rng.choice(ENDS)}"])
        limit = rng.choice(["", " LIMIT 1", " LIMIT 3", " LIMIT 4 OFFSET 2"])
        ranked = f"rank() OVER (ORDER BY {order}) AS r"
        yield rng.choice(
            [
                f"SELECT k, n, c FROM ({rows}) a ORDER BY {order}{limit}",
                f"SELECT k, n, c, {ranked} FROM ({rows}) a ORDER BY r, {order}{limit}",
                f"SELECT k, n, sum(c) AS s FROM ({rows}) a GROUP BY k, n ORDER BY {order[: order.rindex(',')]}",
                f"SELECT k, n, c, row_number() OVER (PARTITION BY k ORDER BY {order}) AS r FROM ({rows}) a"
                f" ORDER BY {order}, r{limit}",
            ]
        )


@pytest.fixture(scope="module")
def session() -> bf.Session:
    model = bf.ScriptedModel(lambda call: call.values[0] != "a")
    session = bf.connect(model, cache=None, progress="off")
    session.from_arrow(FEW, name="t")
    return session


@pytest.mark.parametrize("query", list(_queries(80)))
def test_rows_come_in_their_order(session: bf.Session, query: str) -> None:
    database = duckdb.connect()
    database.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
    database.register("t", FEW)
    expected = database.execute(query.format(PLAIN)).fetchall()
    for condition in (PLAIN, ASKED):
        found = session.sql(query.format(condition)).to_arrow_table()
        assert list(tuples(found)) == expected, condition


@pytest.mark.parametrize("sets", ["ROLLUP (k, n)", "CUBE (k, n)", "GROUPING SETS ((k, n), (n))"])
@pytest.mark.parametrize("condition", ["", ASKED])
def test_no_group_ends_before_its_last_row(sets: str, condition: str) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    session.from_arrow(MANY, name="t")
    query = f"SELECT k, n, count(*) AS c FROM t WHERE k = 1{{}} GROUP BY {sets}"
    database = duckdb.connect()
    database.register("t", MANY)
    expected = unordered(database.execute(query.format("")).fetchall())
    assert (
        unordered(list(tuples(session.sql(query.format(condition)).to_arrow_table()))) == expected
    )


def test_a_single_set_without_keys() -> None:
    """Substrait has no number of one set, which DataFusion's plan reads."""
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    session.from_arrow(FEW, name="t")
    frame = session.sql(
        f"SELECT count(*) AS c FROM t WHERE TRUE{ASKED} GROUP BY GROUPING SETS (())"
    )
    assert frame.to_pylist() == [{"c": 40}]
