"""The first rows that a query reads, of an order, of groups, and of what stands above: no other
answer is asked for, and the rows are those of all answers."""

from __future__ import annotations

import pyarrow as pa
import pytest
from scripts import Counted
from seconds import least_seconds

import blendfusion as bf

F = "llm_filter('f', x)"
N = 400


def _third(call: object) -> bool:
    return sum(map(ord, call.values[0])) % 3 == 0  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def db() -> Counted:
    ids = range(N)
    columns: dict[str, list[object]] = {
        "id": [*ids],
        "g": [i % 8 for i in ids],
        "d": [i * 37 % 101 for i in ids],
        "x": [f"text {i}" for i in ids],
    }
    return Counted(_third).add("t", columns)


_FIRST = "SELECT *, row_number() OVER (PARTITION BY g ORDER BY d, id) AS r FROM t"


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        (f"SELECT id FROM t WHERE {F} QUALIFY rank() OVER (PARTITION BY g ORDER BY d) <= 2", 39),
        (f"SELECT id FROM t WHERE {F} QUALIFY dense_rank() OVER (PARTITION BY g ORDER BY d) <= 2",
         39),
        (f"SELECT id FROM t WHERE {F} QUALIFY rank() OVER (ORDER BY d) <= 5", 20),
        # A limit above, in the order of the groups, in that of their rows.
        (f"SELECT id FROM ({_FIRST} WHERE {F}) WHERE r = 1 ORDER BY g LIMIT 2", 6),
        (f"SELECT id FROM ({_FIRST} WHERE {F}) WHERE r <= 3 ORDER BY g, r LIMIT 5", 18),
        (f"SELECT id FROM ({_FIRST} WHERE {F}) WHERE r <= 2 ORDER BY d, id LIMIT 3", 10),
        (f"SELECT DISTINCT g FROM t WHERE {F} ORDER BY g LIMIT 2", 4),
        # The first values of each group.
        (f"SELECT g, array_agg(id ORDER BY d, id)[1] AS v FROM t WHERE {F} GROUP BY g", 20),
        (f"SELECT g, nth_value(id, 2 ORDER BY d, id) AS v FROM t WHERE {F} GROUP BY g", 39),
        # First rows of first rows, and of groups of these.
        (f"SELECT id FROM (SELECT * FROM t WHERE {F} ORDER BY d, id LIMIT 20) ORDER BY d LIMIT 2",
         6),
        (f"SELECT g, count(*) FROM ({_FIRST} WHERE {F}) WHERE r <= 3 GROUP BY g ORDER BY g LIMIT 2",
         20),
        # Windows that look back.
        (f"SELECT id, row_number() OVER (ORDER BY d, id) AS v FROM t WHERE {F} LIMIT 3", 10),
        (f"SELECT id, sum(d) OVER (ORDER BY id) AS v FROM t WHERE {F} ORDER BY id LIMIT 3", 8),
        (f"SELECT id, lag(id) OVER (ORDER BY id) AS v FROM t WHERE {F} ORDER BY id LIMIT 3", 8),
        # One of a whole partition.
        (f"SELECT id, sum(d) OVER (PARTITION BY g) AS v FROM t WHERE {F} ORDER BY g, id LIMIT 3",
         50),
    ],
)  # fmt: skip
def test_only_the_rows_that_are_read_are_asked_about(db: Counted, sql: str, most: int) -> None:
    assert db.asked(sql) <= most


@pytest.mark.parametrize(
    "window",
    ["ntile(4) OVER (ORDER BY d, id)", "lead(id) OVER (ORDER BY id)", "count(*) OVER ()",
     "percent_rank() OVER (ORDER BY d)"],
)  # fmt: skip
def test_windows_that_look_ahead_need_all_rows(db: Counted, window: str) -> None:
    assert db.asked(f"SELECT id, {window} AS v FROM t WHERE {F} ORDER BY id LIMIT 3") == N


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT id FROM ({_FIRST} WHERE {F}) WHERE r = 1 ORDER BY g LIMIT 5",
        f"SELECT id FROM t WHERE {F} QUALIFY rank() OVER (ORDER BY d) <= 3",
        f"SELECT id FROM t WHERE {F} QUALIFY rank() OVER (PARTITION BY g ORDER BY d) = 1",
        f"SELECT DISTINCT d FROM t WHERE {F} ORDER BY d LIMIT 5",
    ],
)
def test_the_time_grows_with_the_rows_where_a_limit_is_never_full(sql: str) -> None:
    """They looked at all rows in each round: 1,000,000 took a minute."""
    rows = 100_000
    texts = pa.array([f"text {i % 100}" for i in range(rows)])
    keys = {"id": pa.array(range(rows)), "g": pa.array([i % 1_000 for i in range(rows)])}
    table = pa.table({**keys, "d": pa.array([i * 37 % 101 for i in range(rows)]), "x": texts})

    def run() -> None:
        session = bf.connect(bf.ScriptedModel(lambda call: False), cache=None, progress="off")
        session.from_arrow(table, name="t")
        assert session.sql(sql).to_pylist() == []

    assert least_seconds(run, 1.5) < 1.5
