"""ANY and ALL over answers: DataFusion casts nothing there, so answers have the type beside them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scripts import tuples

import blendfusion as bf


@pytest.fixture
def session() -> bf.Session:
    """Numbers and words in the tables t and u. The model answers with the word in the type that it
    is asked for."""

    def answer(request: bf.Request) -> bool | int | float | str:
        word = str(request.values[0])
        return {"integer": int, "number": float}.get(request.constraint.kind, str)(word)

    session = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off")
    numbers = pa.array([1, 2, 3], pa.int64())
    table = pa.table({"n": numbers, "f": [1.0, 2.5, 3.0], "w": ["1", "2", "3"]})
    session.register_record_batches("t", [table.to_batches()])
    session.from_pydict({"w": ["2", "3"]}, name="u")
    return session


def number(question: str) -> str:
    return f"(SELECT llm_map('{question}', w) AS z FROM u)"


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        (f"n = ANY {number('a')}", [2, 3]),
        (f"n <> ALL {number('a')}", [1]),
        (f"n > ANY {number('a')}", [3]),
        (f"n <= ALL {number('a')}", [1, 2]),
        (f"3 > ANY {number('a')} AND n = 3", [3]),
        (f"f >= ALL {number('a')}", [3]),
        (f"w = ANY {number('a')}", [2, 3]),
        ("n <> ALL (SELECT s.z FROM (SELECT llm_map('a', w) AS z FROM u) AS s)", [1]),
        (f"n = ANY {number('a')} AND llm_map('b', w) = n", [2, 3]),
        (f"n = ANY {number('a')} AND n > ANY {number('b')}", [3]),
        (f"n = ANY {number('a')} AND f > ANY {number('b')}", [2, 3]),
        (f"n = ANY {number('a')} AND w <> ALL {number('b')} OR n = 1", [1]),
        (f"n = ANY {number('a')} AND llm_map('b', w) || 'x' = w || 'x'", [2, 3]),
    ],
)
def test_answers_have_the_type_beside_a_quantifier(
    where: str, rows: list[int], session: bf.Session
) -> None:
    found = session.sql(f"SELECT n FROM t WHERE {where} ORDER BY n").to_pydict()
    assert found["n"] == rows


def test_an_error_that_no_type_mends_is_reported(session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match="SetComparison"):
        session.sql(
            f"SELECT n FROM t WHERE n = ANY (SELECT w FROM u) AND n > ANY {number('a')}"
        ).collect()


TESTS = ("n = ANY {}", "n >= ALL {}", "n < ANY {}", "n <> ALL {}", "n NOT IN {}", "EXISTS {}")


@pytest.mark.parametrize("connective", ["AND", "OR"])
def test_marks_of_one_name_are_planned(tmp_path: Path, connective: str) -> None:
    """Each test becomes mark joins with the same table, whose marks have one name: over files, where
    no expression renames a column between them. DuckDB has the rows: under OR, DataFusion alone
    takes NOT IN beside a NULL for true."""
    database = duckdb.connect()
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    data = {"t": [1, 2, 3, 4, None], "s": [2, 3, None]}
    for name, values in data.items():
        rows = pa.table({"n": pa.array(values, pa.int64()), "w": list("abcde")[: len(values)]})
        pq.write_table(rows, tmp_path / f"{name}.parquet")
        database.register(name, rows)
        session.register_parquet(name, tmp_path / f"{name}.parquet")
    for one, other in product(TESTS, TESTS):
        tests = one.format("(SELECT n FROM s WHERE s.n > t.n OR s.n = 3)") if "EX" in one else one
        tests = f"({tests} {connective} {other})".format(*["(SELECT n FROM s)"] * 2)
        frame = session.sql(f"SELECT w FROM t WHERE {tests} AND llm_filter('q', w)")
        assert frame.prepared.reason is None, tests
        expected = database.execute(f"SELECT w FROM t WHERE {tests}").fetchall()
        assert sorted(tuples(frame.to_arrow_table())) == sorted(expected), tests
