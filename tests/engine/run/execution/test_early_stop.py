"""Work ends where it is no longer needed, and leaves nothing behind."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from scripts import Counted

import blendfusion as bf
from blendfusion.run.execution.executor import HIDDEN_CATALOG, STAGE_SCHEMA

N = 100_000


def table() -> pa.Table:
    return pa.table({"id": range(N), "x": [f"v{i}" for i in range(N)]})


def every_tenth(call: bf.Request) -> bool:
    return int((call.values[0] or "v1")[1:]) % 10 == 0


def hidden_tables(db: Counted) -> set[str]:
    return set(db.session.catalog(HIDDEN_CATALOG).schema(STAGE_SCHEMA).names())


@pytest.fixture
def db() -> Counted:
    return Counted(every_tenth).add("t", table())


def test_a_limit_over_a_large_table_asks_little_more_than_its_rows_need(db: Counted) -> None:
    sql = "SELECT id FROM t WHERE llm_filter('tenth?', x) AND id % 2 = 0 LIMIT 3"
    # Of the even ids 0, 2, 4, … every fifth is a hit: the third is the 11th value.
    assert 11 <= db.asked(sql) <= 22
    assert db.rows(sql) == [(0,), (10,), (20,)]


def test_a_selective_limit_asks_at_most_twice_what_its_rows_need() -> None:
    db = Counted(lambda call: int((call.values[0] or "")[1:]) % 700 == 699).add("t", table())
    sql = "SELECT id FROM t WHERE llm_filter('rare?', x) LIMIT 3"
    assert 2100 <= db.asked(sql) <= 4200
    assert db.rows(sql) == [(699,), (1399,), (2099,)]


def test_exists_and_offset_stop_too(db: Counted) -> None:
    sql = "SELECT id FROM t WHERE llm_filter('tenth?', x) LIMIT 2 OFFSET 5"
    assert db.asked(sql) <= 2 * 61
    assert db.rows(sql) == [(50,), (60,)]


def test_a_computed_column_of_exists_is_planned(db: Counted) -> None:
    db.add("u", pa.table({"y": ["v1", "v2"]}))
    sql = "SELECT id FROM t WHERE id < 3 AND (x = 'v1' OR EXISTS (SELECT llm_map('q', y) FROM u))"
    assert db.session.sql(sql).prepared.reason is None
    assert db.rows(sql) == [(0,), (1,), (2,)]


def test_a_stream_that_is_closed_early_asks_no_more(db: Counted) -> None:
    before = set(threading.enumerate())
    stream = db.session.sql("SELECT id FROM t WHERE llm_filter('tenth?', x)").execute_stream()
    assert next(stream).to_pyarrow().num_rows > 0
    stream.close()
    asked = len(db.model.calls)
    assert asked <= 64
    assert set(threading.enumerate()) <= before
    assert hidden_tables(db) == set()
    assert db.rows("SELECT count(*) FROM t") == [(N,)]
    assert len(db.model.calls) == asked


def test_a_for_loop_that_breaks_asks_no_more(db: Counted) -> None:
    for _ in db.session.sql("SELECT id, llm_bool('tenth?', x) FROM t"):
        break
    assert len(db.model.calls) <= 64
    assert hidden_tables(db) == set()


TWO_STAGES = (
    "SELECT a.k, count(*) FROM (SELECT llm_filter('tenth?', x) AS k, id FROM t WHERE id < 50) AS a "
    "JOIN (SELECT max(id) + min(id) AS m FROM t WHERE id < 60 AND llm_filter('other?', x)) AS b ON a.id < b.m "
    "GROUP BY a.k ORDER BY 1"
)


@pytest.mark.parametrize("problem", [RuntimeError("the model broke"), KeyboardInterrupt()])
@pytest.mark.parametrize(("question", "value"), [("tenth?", "v40"), ("other?", "v50")])
def test_what_a_model_raises_reaches_the_caller_and_the_session_goes_on(
    problem: BaseException, question: str, value: str
) -> None:
    broken = True

    def script(call: bf.Request) -> bool:
        if broken and call.question == question and call.values[0] == value:
            raise problem
        return every_tenth(call)

    db = Counted(script).add("t", table())
    before = set(threading.enumerate())
    with pytest.raises(type(problem)):
        db.session.sql(TWO_STAGES).collect()
    assert set(threading.enumerate()) <= before
    assert hidden_tables(db) == set()
    broken = False
    assert db.rows(TWO_STAGES) == [(False, 45), (True, 5)]
    assert hidden_tables(db) == set()


def test_stages_are_not_seen_by_the_user(db: Counted) -> None:
    assert db.session.catalog_names() == {"datafusion"}
    db.rows(TWO_STAGES)
    assert db.session.catalog().schema().names() == {"t"}


def test_pairs_are_put_in_order_without_what_a_condition_keeps_from_being_computed() -> None:
    left = pa.table({"x": [0, 1, 2, 0], "k": [1, 1, 1, 1]})
    right = pa.table({"k": [1, 1], "u": ["a", "b"]})
    db = Counted(lambda call: True).add("l", left).add("r", right)
    asks = "l.x = 0 OR llm_filter('q', CAST(100 / l.x AS VARCHAR))"
    sql = f"SELECT l.x, r.u FROM l JOIN r ON l.k = r.k WHERE ({asks}) AND llm_filter('p', r.u)"
    assert len(db.rows(sql)) == 8
    assert len(db.rows(f"{sql} LIMIT 3")) == 3


@pytest.mark.parametrize("chunk_rows", [1, 3, 100])
@pytest.mark.parametrize("operator", ["OR", "AND"])
def test_an_answer_that_a_row_has_comes_before_a_question(chunk_rows: int, operator: str) -> None:
    """B is asked where A is true; where it decides the second condition, C is not asked."""
    sign = operator == "OR"

    def answer(call: bf.Request) -> bool:
        n = int(str(call.values[0]))
        return {"A": n % 2 == 0, "B": (n % 4 == 0) is sign, "C": sign}[call.question[0]]

    model = bf.ScriptedModel(answer)
    session = bf.connect(model, cache=None, chunk_rows=chunk_rows, first_chunk_rows=chunk_rows)
    session.from_pydict({"x": [str(n) for n in range(16)] + [None]}, "t")
    a, b, c = (f"llm_filter('{name}?', x)" for name in "ABC")
    rows = session.sql(
        f"SELECT x, CASE WHEN {a} THEN {b} END AS y, {c} {operator} {b} AS z FROM t"
    ).to_pylist()
    for row in rows[:16]:
        n = int(row["x"])
        assert row["y"] == (None if n % 2 else (n % 4 == 0) is sign)
        assert row["z"] is sign
    assert (rows[16]["y"], rows[16]["z"]) == (None, None)
    asked = [call.question[0] for call in model.calls]
    assert {name: asked.count(name) for name in "ABC"} == {"A": 16, "B": 8, "C": 12}
