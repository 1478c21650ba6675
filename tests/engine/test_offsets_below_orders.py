"""A limit with an offset below something that orders its rows keeps as many as it says."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionContext
from scripts import hashed

import blendfusion as bf

N = 9
TABLE = pa.table({"x": [*range(N)], "y": [*range(N, 0, -1)]})
SOME = "(SELECT x, y FROM d LIMIT 4 OFFSET {offset})"
WAYS = {
    "a sort": "SELECT y FROM {some} ORDER BY y",
    "down": "SELECT y FROM {some} ORDER BY y DESC, x",
    "an expression": "SELECT y FROM {some} ORDER BY y + 1",
    "another column": "SELECT y FROM {some} ORDER BY x % 2, x",
    "a window": "SELECT y, row_number() OVER (ORDER BY y) AS n FROM {some}",
    "a window by groups": "SELECT y, rank() OVER (PARTITION BY x % 2 ORDER BY y) AS n FROM {some}",
    "distinct on": "SELECT DISTINCT ON (y) y FROM {some} ORDER BY y, x DESC",
    "a filter between": "SELECT y FROM {some} WHERE y > 0 ORDER BY y",
    "columns between": "SELECT y FROM (SELECT y, x + y AS z FROM {some}) ORDER BY z, y",
    "a CTE": "WITH s AS {some} SELECT y FROM s ORDER BY y",
    "a union": "SELECT y FROM (SELECT * FROM {some} UNION ALL SELECT * FROM d WHERE x < 0) "
    "ORDER BY y",
    "an inner order": "SELECT y FROM (SELECT x, y FROM d ORDER BY x LIMIT 4 OFFSET {offset}) "
    "ORDER BY y",
    "a call": "SELECT y, llm_score('s', y::text) AS s FROM {some} ORDER BY y",
    "a call below": "SELECT y FROM (SELECT y, llm_score('s', y::text) AS s FROM {some}) "
    "WHERE s >= 0 ORDER BY s, y",
}


@pytest.fixture(scope="module")
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(hashed), progress="off", cache=None)
    session.from_arrow(TABLE, name="d")
    return session


def test_datafusion_keeps_too_few() -> None:
    """Once this fails, ``offset_bug`` may go."""
    context = SessionContext()
    context.from_arrow(TABLE, name="d")
    frame = context.sql(WAYS["a sort"].format(some=SOME.format(offset=2)))
    assert len(frame.to_pylist()) == 2


@pytest.mark.parametrize("way", WAYS)
def test_as_many_rows_as_the_limit_says(session: bf.Session, way: str) -> None:
    for offset, rows in ((1, 4), (3, 4), (7, 2), (20, 0)):
        some = SOME.format(offset=offset)
        sql = WAYS[way].format(some=some, offset=offset)
        found = session.sql(sql).to_pydict()["y"]
        assert len(found) == len({*found}) == rows, sql
        if way == "a sort":
            assert found == sorted(found)


@pytest.mark.parametrize("order", ["y", "x % 2, y", "y DESC"])
@pytest.mark.parametrize("way", ["a sort", "a window", "distinct on", "a CTE", "a call below"])
def test_an_offset_alone_skips_the_first_rows_in_its_order(
    session: bf.Session, way: str, order: str
) -> None:
    for offset in (1, 3, 8):
        some = f"(SELECT x, y FROM d ORDER BY {order} OFFSET {offset})"
        found = session.sql(WAYS[way].format(some=some)).to_pydict()["y"]
        rows = session.sql(f"SELECT y FROM d ORDER BY {order}").to_pydict()["y"]
        assert sorted(found) == sorted(rows[offset:]), (order, offset)


def test_lists_in_order(session: bf.Session) -> None:
    sql = f"SELECT array_agg(y ORDER BY y) AS ys FROM {SOME.format(offset=3)}"
    assert len(session.sql(sql).to_pydict()["ys"][0]) == 4


def test_statements_and_verbs(session: bf.Session) -> None:
    frame = session.table("d").limit(4, offset=2).sort(bf.col("y"))
    assert len(frame.to_pylist()) == frame.count() == len(frame.cache().to_pylist()) == 4
    sql = WAYS["a sort"].format(some=SOME.format(offset=2))
    session.sql(f"CREATE TABLE kept AS {sql}")
    assert session.table("kept").count() == 4
    session.sql(f"INSERT INTO kept {sql}").collect()
    assert session.table("kept").count() == 8


def test_pages_stay_as_they_are(session: bf.Session) -> None:
    """A limit above the sort is no case of it."""
    frame = session.sql("SELECT y FROM d ORDER BY y LIMIT 3 OFFSET 2")
    assert frame.to_pydict()["y"] == [3, 4, 5]
    assert "random" not in frame.explain_text()
