"""Truth tests below groups have DuckDB's rows, plain and beside calls."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pytest
from scripts import Counted, spoken

ROWS = pa.table(
    {"id": [1, 2, 3, 4], "b": [True, False, None, True], "k": [1, 1, 2, 2], "x": list("aabc")}
)
TESTS = [
    f"{operand} IS {negation}{truth}"
    for operand, negation, truth in itertools.product(
        ("b", "nullif(id > 1, b)", "coalesce(b, k = 2)"), ("", "NOT "), ("TRUE", "FALSE", "UNKNOWN")
    )
]
ASKING = "llm_filter('starts with ', x)", "llm_filter('starts with ', CAST(z AS TEXT))"
SHAPES = (
    "SELECT DISTINCT {test} AS z FROM t WHERE {where}",
    "SELECT DISTINCT NOT ({test}) AS z, k FROM t WHERE {where}",
    "SELECT {test} AS z, count(*) AS n FROM t WHERE {where} GROUP BY 1",
    "SELECT {test} AS z, k, count(*) AS n FROM t WHERE {where} GROUP BY ROLLUP ({test}, k)",
    "SELECT count(DISTINCT {test}) AS z FROM t WHERE {where}",
    "SELECT count(DISTINCT {test}) AS z, sum(DISTINCT k) AS n FROM t WHERE {where} GROUP BY k",
    "SELECT z, max(id) AS n FROM (SELECT id, {test} AS z FROM t WHERE {where}) AS q GROUP BY z",
    "SELECT {test} AS z FROM t WHERE {where} UNION SELECT b FROM t",
    "SELECT {test} AS z FROM t WHERE {where} EXCEPT SELECT b FROM t WHERE id = 2",
    "SELECT z FROM (SELECT DISTINCT {test} AS z FROM t) AS q WHERE {said}",
)


@pytest.fixture(scope="module")
def db() -> Counted:
    return Counted(spoken).add("t", ROWS)


@pytest.mark.parametrize("shape", SHAPES)
def test_rows(db: Counted, shape: str) -> None:
    other = duckdb.connect()
    other.register("t", ROWS)
    for test in TESTS:
        asked = test.replace("UNKNOWN", "NULL")
        due = shape.format(test=asked, where="TRUE", said="TRUE")
        rows = sorted(other.execute(due).fetchall(), key=repr)
        for where, said in (("x <> ''", "z IS NOT NULL"), ASKING):
            query = shape.format(test=test, where=where, said=said)
            assert sorted(db.rows(query), key=repr) == rows, query
