"""Clocks that are put back show an hour twice: its times are others, equal as they look."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from datafusion import SessionContext

import blendfusion as bf

MOMENTS = [datetime.datetime(2024, 10, 27, h, m) for h in (0, 1) for m in (0, 30, 45)]
ROWS = pa.table(
    {
        "id": [*range(36)],
        "n": [i // 12 for i in range(36)],
        "at": pa.array([MOMENTS[i % 6] for i in range(36)], pa.timestamp("us", "Europe/Berlin")),
        "x": [f"v{i * 7 % 11}" for i in range(36)],
    }
)


def truth(text: str, which: int) -> bool:
    return int(text[1:]) % 4 == which


@pytest.fixture(scope="module")
def both() -> tuple[bf.Session, SessionContext]:
    def script(call: bf.Request) -> object:
        *_, text = call.values
        assert text is not None
        return truth(text, int(call.question)) if call.constraint.kind == "boolean" else text

    session, plain = bf.connect(bf.ScriptedModel(script), cache=None), SessionContext()
    session.from_arrow(ROWS, name="t")
    rows = ROWS
    for which in range(4):
        answers = pa.array([truth(text, which) for text in ROWS["x"].to_pylist()])
        rows = rows.append_column(f"f{which}", answers)
    plain.from_arrow(rows, name="t")
    return session, plain


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT at FROM t WHERE f",
        "SELECT n, count(DISTINCT at) AS d FROM t WHERE f GROUP BY n",
        "SELECT at FROM t WHERE f GROUP BY at",
        "SELECT id FROM t WHERE at IN (SELECT at FROM t WHERE f AND n = 1)",
        "SELECT n, at FROM t WHERE f GROUP BY n, at ORDER BY n, at LIMIT 5",
        "SELECT id FROM (SELECT id, rank() OVER (PARTITION BY n ORDER BY at) AS r FROM t WHERE f) "
        "WHERE r <= 2",
        "SELECT id FROM (SELECT id, dense_rank() OVER (PARTITION BY n ORDER BY at DESC) AS r FROM t "
        "WHERE f) WHERE r <= 2",
        "SELECT n, max(at) AS m FROM t WHERE f GROUP BY n",
        "SELECT at, count(*) AS c FROM t WHERE f GROUP BY at HAVING count(*) > 3",
        "SELECT count(*) AS c FROM t WHERE f AND at = (SELECT max(at) FROM t WHERE f)",
        "SELECT DISTINCT ON (at) at, id FROM t WHERE f ORDER BY at, id",
        "SELECT at FROM t WHERE f UNION SELECT at FROM t WHERE n = 7",
        "SELECT at FROM t WHERE n = 0 EXCEPT SELECT at FROM t WHERE f AND id < 3",
        "SELECT id, count(*) OVER (PARTITION BY at) AS c FROM t WHERE f",
    ],
)
def test_times_of_an_hour_that_clocks_repeat(
    both: tuple[bf.Session, SessionContext], sql: str
) -> None:
    session, plain = both
    for which in range(4):
        called = sql.replace(" f", f" llm_filter('{which}', x)")
        ours = session.sql(called).to_pylist()
        expected = plain.sql(sql.replace(" f", f" f{which}")).to_pylist()
        assert sorted(map(repr, ours)) == sorted(map(repr, expected))


def test_keys_of_joins_by_meaning(both: tuple[bf.Session, SessionContext]) -> None:
    session, plain = both
    sql = "SELECT a.id, b.id AS b FROM t a JOIN t b ON a.at = b.at AND a.n = b.n AND {}"
    ours = session.sql(sql.format("llm_join(a.x, b.x)")).to_pylist()
    assert sorted(map(repr, ours)) == sorted(
        map(repr, plain.sql(sql.format("a.x = b.x")).to_pylist())
    )


@pytest.mark.parametrize(
    "values",
    [
        pa.array([{"a": 1}, {"a": 2}, {"a": 1}]),
        pa.array([[1], [2, None], [1]]),
        pa.array([float("nan"), 0.0, -0.0]),
    ],
    ids=["structs", "lists", "numbers"],
)
def test_keys_of_any_type(values: pa.Array) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: "none"), cache=None)
    session.from_arrow(pa.table({"id": [0, 1, 2], "k": values, "x": ["u"] * 3}), name="t")
    sql = "SELECT a.id, b.id AS b FROM t a JOIN t b ON a.k = b.k AND {} ORDER BY 1, 2"
    expected = session.sql(sql.format("a.x = b.x")).to_pylist()
    assert session.sql(sql.format("llm_join(a.x, b.x)")).to_pylist() == expected
