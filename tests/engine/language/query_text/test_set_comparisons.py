"""Comparisons with ANY, SOME and ALL rows of a subquery are those of other systems."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

import blendfusion as bf

NUMBERS = pa.table({"k": range(6), "n": pa.array([1, 2, 3, None, 2, 1]), "x": list("abcdef")})
OTHERS = pa.table({"k": range(4), "n": pa.array([2, 1, 3, None])})
WHOLE = OTHERS.slice(0, 3)


@pytest.fixture(scope="module")
def session() -> bf.Session:
    model = bf.ScriptedModel(lambda call: call.values[0] != "b")
    session = bf.connect(model, cache=None, progress="off")
    for name, table in {"g": NUMBERS, "h": OTHERS, "w": WHOLE}.items():
        session.from_arrow(table, name=name)
    return session


def _conditions(count: int) -> Iterator[tuple[str, str]]:
    """(a condition on ``g`` with a comparison, which may read a call's answers; the same without)"""
    rng = random.Random(28)
    for _ in range(count):
        table = rng.choice("ghw")
        where = rng.choice(["", " WHERE n > 1", " WHERE n > 99", " WHERE o.k < g.k"])
        read = f"{table} AS o" if "o." in where else table
        column = rng.choice(["n", "n", "n + 0", "n AS n", "min(n)", "*"])
        if column == "*":
            read, where = f"(SELECT n FROM {table}) AS o", ""
        query = f"SELECT {column} FROM {read}{where}"
        if rng.random() < 0.2:
            query += " UNION ALL SELECT 2"
        value = rng.choice(["g.n", "n", "n + 0", "2"])
        compared = f"{value} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} "
        compared += f"{rng.choice(['ANY', 'ALL'])} ({query})"
        form = rng.choice(["{} AND {}", "NOT ({1}) AND {0}", "{} OR {}", "({1}) IS NULL AND {0}"])
        yield (
            form.format("llm_filter('q', x)", compared),
            form.format("x <> 'b'", compared),
        )


@pytest.mark.parametrize(("asked", "plain"), list(_conditions(80)))
def test_rows_are_those_of_another_system(session: bf.Session, asked: str, plain: str) -> None:
    database = duckdb.connect()
    for name, table in {"g": NUMBERS, "h": OTHERS, "w": WHOLE}.items():
        database.register(name, table)
    wanted = database.sql(f"SELECT k FROM g WHERE {plain} ORDER BY k").fetchall()
    for condition in (asked, plain):
        try:
            rows = session.sql(f"SELECT k FROM g WHERE {condition} ORDER BY k").to_pylist()
        except bf.BlendFusionError:
            if "o.k" in condition:  # a correlation that DataFusion does not plan
                continue
            raise
        assert [tuple(row.values()) for row in rows] == wanted, condition
