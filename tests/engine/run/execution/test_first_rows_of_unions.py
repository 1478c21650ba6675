"""The first rows of a union whose branches have constants among the keys, in every place where they
may be read. One branch is slower than the others: what the fast ones find must not drop its rows."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionContext, udf
from scripts import hashed

import blendfusion as bf

N = 12
Keys = tuple[object, ...]


def _slow(numbers: pa.Array) -> pa.Array:
    time.sleep(0.02)
    return numbers


def _prepare(session: SessionContext) -> SessionContext:
    """A table in which the rows of later branches come first by ``x``, in both directions."""
    ids = [*range(N)]
    rows = pa.table({"id": ids, "x": [100 * (i % 3) + i for i in ids], "k": [i % 3 for i in ids]})
    session.register_record_batches("t", [rows.to_batches()])
    session.register_udf(udf(_slow, [pa.int64()], pa.int64(), "volatile", "slow"))
    return session


def _session(**options: object) -> bf.Session:
    session = bf.connect(bf.ScriptedModel(hashed), progress="off", cache=None, **options)  # type: ignore[arg-type]
    _prepare(session)
    return session


@pytest.fixture(scope="module")
def planned() -> bf.Session:
    return _session()


@pytest.fixture(scope="module")
def plain() -> bf.Session:
    return _session(planner=False)


# The constants of each branch, and what the query is ordered by.
SIDES = {
    "numbers": ("side", [("0 AS side", (0,)), ("1 AS side", (1,)), ("2 AS side", (2,))]),
    "texts": ("side", [("'a' AS side", ("a",)), ("'b' AS side", ("b",)), ("'c' AS side", ("c",))]),
    "casts": (
        "side",
        [(f"CAST('2024-01-0{i}' AS DATE) AS side", (i,)) for i in (1, 2, 3)],
    ),
    "expressions": ("side", [(f"length(repeat('z', {i})) AS side", (i,)) for i in (0, 1, 2)]),
    "null": (
        "side NULLS FIRST",
        [("CAST(NULL AS INT) AS side", (-1,)), ("1 AS side", (1,)), ("2 AS side", (2,))],
    ),
    "filters": ("side", [("k AS side", (i,)) for i in (0, 1, 2)]),
    "two": (
        "side, other DESC",
        [("0 AS side, 1 AS other", (0, -1)), ("0 AS side, 0 AS other", (0, 0)),
         ("1 AS side, 9 AS other", (1, -9))],
    ),
    "behind": (
        "id * 0, side",
        [("0 AS side", (0,)), ("1 AS side", (1,)), ("2 AS side", (2,))],
    ),
    "not alone": (
        "side, other",
        [("0 AS side, k AS other", (0, 0)), ("1 AS side, k AS other", (1, 1)),
         ("2 AS side, k AS other", (2, 2))],
    ),
}  # fmt: skip


def _union(sides: str, *, slow: int) -> str:
    """The branches as SQL; ``slow`` is the number of one that is slower."""
    parts = [
        f"SELECT {constants}, {'slow(id)' if number == slow else 'id'} AS id, x FROM t "
        f"WHERE k = {number}"
        for number, (constants, _) in enumerate(SIDES[sides][1])
    ]
    return " UNION ALL ".join(parts)


def _first(sides: str, *, down: bool, limit: int, offset: int = 0) -> list[int]:
    """The ids that the query has, in order."""
    rows = sorted(
        (keys, -i if down else i)
        for number, (_, keys) in enumerate(SIDES[sides][1])
        for i in range(number, N, 3)
    )
    return [abs(i) for _, i in rows[offset : offset + limit]]


def _ids(session: bf.Session, sql: str) -> list[int]:
    return [int(i) for i in session.sql(sql).to_pydict()["id"]]


def _order(sides: str, *, down: bool) -> str:
    return f"{SIDES[sides][0]}, x{' DESC' if down else ''}"


def test_datafusion_still_loses_them() -> None:
    """Once this fails, ``one_sort`` may go."""
    context = _prepare(SessionContext())
    sql = f"SELECT id FROM ({_union('numbers', slow=0)}) ORDER BY side, x DESC LIMIT 3"
    assert context.sql(sql).to_pydict()["id"] != _first("numbers", down=True, limit=3)


@pytest.mark.parametrize("sides", SIDES)
def test_constants_among_the_keys(planned: bf.Session, sides: str) -> None:
    for slow, down in product((0, 1, 2), (False, True)):
        order = _order(sides, down=down)
        sql = f"SELECT id FROM ({_union(sides, slow=slow)}) ORDER BY {order} LIMIT 5"
        assert _ids(planned, sql) == _first(sides, down=down, limit=5), sql


WAYS = {
    "a derived table": "SELECT id FROM ({union}) AS u ORDER BY {order} LIMIT 5",
    "no brackets": "{union} ORDER BY {order} LIMIT 5",
    "a CTE": "WITH u AS ({union}) SELECT id FROM u ORDER BY {order} LIMIT 5",
    "a limit below": "SELECT id FROM (SELECT * FROM ({union}) ORDER BY {order} LIMIT 5) "
    "ORDER BY {order}",
    "a join": "SELECT u.id FROM ({union}) AS u JOIN (VALUES (1), (2)) AS v(n) ON u.id >= 0 "
    "WHERE v.n = 1 ORDER BY {order} LIMIT 5",
    "a cross join": "SELECT u.id FROM (VALUES (7)) AS v(n) CROSS JOIN ({union}) AS u "
    "ORDER BY {order} LIMIT 5",
    "a filter": "SELECT id FROM ({union}) WHERE id + 1 > 0 ORDER BY {order} LIMIT 5",
    "a window": "SELECT id FROM (SELECT *, row_number() OVER (ORDER BY {order}) AS n "
    "FROM ({union})) ORDER BY n LIMIT 5",
    "a window behind a limit": "SELECT id, sum(id) OVER (ORDER BY {order} ROWS 1 PRECEDING) AS n "
    "FROM ({union}) ORDER BY {order} LIMIT 5",
    "a nested union": "SELECT id FROM (SELECT * FROM ({union}) UNION ALL SELECT * FROM ({union}) "
    "WHERE id < 0) ORDER BY {order} LIMIT 5",
    "a subquery": "SELECT id FROM t WHERE id IN (SELECT id FROM ({union}) ORDER BY {order} "
    "LIMIT 5) ORDER BY k, x DESC",
    "a call above": "SELECT id, llm_score('s', x::text) AS s FROM ({union}) ORDER BY {order} "
    "LIMIT 5",
    "a call below": "SELECT id FROM (SELECT *, llm_int('i', x::text) AS i FROM ({union})) "
    "WHERE i >= 0 ORDER BY {order} LIMIT 5",
    "a call behind a limit": "SELECT id FROM (SELECT * FROM ({union}) ORDER BY {order} LIMIT 5) "
    "WHERE llm_int('i', x::text) >= 0 ORDER BY {order}",
    "a call beside a limit": "SELECT id FROM t WHERE id IN (SELECT id FROM ({union}) "
    "ORDER BY {order} LIMIT 5) AND llm_int('i', x::text) >= 0 ORDER BY k, x DESC",
    "a call that nothing carries": "SELECT id FROM (SELECT * FROM ({union}) ORDER BY {order} "
    "LIMIT 5) WHERE llm_int('i', arrow_typeof(side)) >= 0 ORDER BY {order}",
}


@pytest.mark.parametrize("way", WAYS)
def test_everywhere(planned: bf.Session, plain: bf.Session, way: str) -> None:
    for sides, session in product(("numbers", "filters"), (planned, plain)):
        order = _order(sides, down=True)
        for slow in (0, 2):
            sql = WAYS[way].format(union=_union(sides, slow=slow), order=order)
            assert _ids(session, sql) == _first(sides, down=True, limit=5), sql


def test_offsets(planned: bf.Session) -> None:
    for offset in (1, 4):
        sql = f"{_union('texts', slow=0)} ORDER BY side, x LIMIT 3 OFFSET {offset}"
        expected = _first("texts", down=False, limit=3, offset=offset)
        assert _ids(planned, sql) == expected


def test_verbs_and_views(planned: bf.Session) -> None:
    expected = _first("numbers", down=True, limit=3)
    planned.sql(f"CREATE OR REPLACE VIEW u AS {_union('numbers', slow=0)}")
    key = bf.col("x").sort(ascending=False)
    frame = planned.table("u").sort(bf.col("side"), key).limit(3)
    assert frame.to_pydict()["id"] == expected
    assert [row["id"] for row in frame.cache().to_pylist()] == expected
    assert [i for batch in frame.collect_partitioned()[0] for i in batch["id"].to_pylist()] == (
        expected
    )
    assert _ids(planned, "SELECT id FROM u ORDER BY side, x DESC LIMIT 3") == expected


def test_statements(planned: bf.Session, tmp_path: Path) -> None:
    """What they store has the rows of the query."""
    expected = sorted(_first("numbers", down=True, limit=3))
    query = f"SELECT id FROM ({_union('numbers', slow=0)}) ORDER BY side, x DESC LIMIT 3"

    planned.sql(f"CREATE OR REPLACE TABLE made AS {query}")
    assert sorted(_ids(planned, "SELECT id FROM made")) == expected
    planned.sql(f"INSERT INTO made {query}").collect()
    assert sorted(_ids(planned, "SELECT id FROM made")) == sorted(expected * 2)
    planned.sql("DROP TABLE IF EXISTS chosen")
    planned.sql(f"{query.replace(' FROM', ' INTO chosen FROM', 1)}")
    assert sorted(_ids(planned, "SELECT id FROM chosen")) == expected
    planned.sql(f"COPY ({query}) TO '{tmp_path / 'ids.csv'}' STORED AS CSV").collect()
    assert sorted(map(int, (tmp_path / "ids.csv").read_text().split()[1:])) == expected


def test_the_option_stays_as_it_was(planned: bf.Session) -> None:
    """Only the frames of such limits have it off."""
    test_offsets(planned)
    plan = planned.sql("SELECT * FROM (SELECT * FROM t UNION ALL SELECT * FROM t) ORDER BY x")
    assert "SortPreservingMergeExec" in plan.execution_plan().display_indent()
