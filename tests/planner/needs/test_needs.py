"""The first rows that a query reads, of an order, of groups, and of what stands above: no other
answer is asked for, and the rows are those of all answers."""

from __future__ import annotations

import random
from itertools import product

import pyarrow as pa
import pytest
from group_queries import check_rows, grouped_rows, seeded_script
from scripts import Counted
from seconds import least_seconds

import blendfusion as bf
from blendfusion.run.execution import first_rows

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


@pytest.mark.parametrize("seed", [520011, *range(6)])
@pytest.mark.parametrize("other", ["rank()", "sum(n)", "max(n)"])
def test_a_limit_counts_no_rows_that_only_windows_read(
    seed: int, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that equal the first one of a group in a part of the order, which another window reads,
    are none of those that a limit above counts."""
    for part, order in product((1, 1_024), ("m NULLS FIRST, l DESC, id", "m, id")):
        monkeypatch.setattr(first_rows, "_PART", part)
        check_rows(
            f"SELECT id, v FROM (SELECT *, row_number() OVER (PARTITION BY k, l ORDER BY {order}) "
            f"AS r, {other} OVER (PARTITION BY k, l ORDER BY m NULLS FIRST) AS v FROM t "
            "WHERE llm_filter('f', x)) WHERE r = 1 ORDER BY k, id LIMIT 3 OFFSET 1",
            grouped_rows(random.Random(seed)),
            seeded_script(seed),
        )


def test_keys_of_partitions_in_an_order_make_no_ties() -> None:
    """``l`` is equal in each group, so that ``id`` alone decides between rows of one ``m``."""
    check_rows(
        "SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY k, l ORDER BY m NULLS FIRST, "
        "l DESC, id) AS r FROM t WHERE llm_filter('f', x)) WHERE r = 1 "
        "ORDER BY k, id LIMIT 3 OFFSET 1",
        grouped_rows(random.Random(520011)),
        seeded_script(520011),
    )
