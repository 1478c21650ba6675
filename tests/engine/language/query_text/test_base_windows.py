"""A window that starts from a named one has its clauses, which DataFusion leaves out."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pytest

import blendfusion as bf

TABLE = pa.table(
    {
        "id": range(12),
        "k": [0, 1, None] * 4,
        "n": [3, 1, 4, None, 5, 9, 2, 6, 5, 3, None, 8],
        "x": [f"v{i % 5}" for i in range(12)],
    }
)
PARTS = ("", "PARTITION BY k", "PARTITION BY k, id % 2")
ORDERS = ("", "ORDER BY id", "ORDER BY id DESC")
FRAMES = ("", "ROWS 1 PRECEDING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING")
FORMS = (
    "SELECT id, {f} OVER (w {order} {frame}) AS v{call} FROM t WINDOW w AS ({part})",
    "SELECT id, {f} OVER (w {frame}) AS v{call} FROM t WINDOW w AS ({part} {order})",
    'SELECT id, {f} OVER v AS v{call} FROM t WINDOW "W" AS ({part}), v AS ("W" {order} {frame})',
    "SELECT id, {f} OVER (u {frame}) AS v{call} FROM t WINDOW w AS ({part}), u AS (W {order})",
    "SELECT id, v{call} FROM (SELECT *, {f} OVER (w {order} {frame}) AS v FROM t "
    "WINDOW w AS ({part})) q WINDOW w AS (ORDER BY n)",
    "SELECT id, {f} OVER (w {order} {frame}) AS v{call} FROM t WINDOW w AS ({part}) "
    "QUALIFY {f} OVER (w {order} {frame}) > 1",
)


@pytest.fixture(scope="module")
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    made.from_arrow(TABLE, name="t")
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", ["", ", llm_filter('q', x) AS f"])
def test_the_rows_are_those_of_duckdb(session: bf.Session, form: str, call: str) -> None:
    judge = duckdb.connect()
    judge.register("t", TABLE)
    for part, order, frame in itertools.product(PARTS, ORDERS, FRAMES):
        if frame and not order:
            continue  # rows in no order
        parts = {"part": part, "order": order, "frame": frame, "f": "max(n)"}
        right = judge.execute(form.format(**parts, call=", true" * bool(call))).fetchall()
        found = session.sql(form.format(**parts, call=call)).to_pylist()
        assert sorted(map(repr, (tuple(row.values()) for row in found))) == sorted(map(repr, right))


@pytest.mark.parametrize(
    "windows", ["w AS (PARTITION BY k)", "v AS (v ORDER BY id)", "v AS (u), u AS (v)"]
)
def test_a_window_that_is_not_defined_is_refused(session: bf.Session, windows: str) -> None:
    with pytest.raises(bf.QueryError, match=r"the window [uv] is not defined"):
        session.sql(f"SELECT sum(n) OVER (v ROWS 1 PRECEDING) AS s FROM t WINDOW {windows}")
