"""UPDATE, DELETE and SELECT INTO: the rows of SQL, and the questions that can matter."""

from __future__ import annotations

import random
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scripts import Counted, spoken

import blendfusion as bf

ROWS = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "x": ["a", "b", None, "a", "cab", "b"],
        "n": [1, 2, 3, None, 5, 6],
        "d": pa.array([1, 2, 3, 4, 5, None], pa.decimal128(8, 2)),
    }
)
OTHER = pa.table({"id": [2, 4, 9], "x": ["a", "b", "a"]})
HOLDS, FILTER = "contains(x, 'a')", "llm_filter('holds a', x)"
UPPER, ANSWER = "upper(x)", "llm_text('upper', x)"
WHERES = {
    "FALSE": None,
    "id = NULL": None,
    "id = 1 AND id = 2": None,
    "id = 1 OR TRUE": None,
    "id IN (1, 2, NULL)": None,
    "NOT id = 1": None,
    "n BETWEEN 2 AND 5": None,
    "id IN (SELECT id FROM u)": None,
    "id NOT IN (SELECT id FROM u)": None,
    "EXISTS (SELECT 1 FROM u WHERE u.id = t.id)": None,
    "n > (SELECT avg(n) FROM t)": None,
    HOLDS: 3,
    f"id > 3 AND {HOLDS}": 3,
    f"id = 4 OR {HOLDS}": 3,
    f"NOT ({HOLDS} AND n < 3)": 2,
    f"({HOLDS}) IS NOT TRUE": 3,
    "id IN (SELECT id FROM u WHERE contains(u.x, 'a') AND u.id > 3)": 1,
    "EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND contains(u.x, 'a'))": 2,
}
"""Predicates, each with the number of values that can matter where it has a call."""
SETS = {
    "n = n + 1": 0,
    "n = 0, d = d * 2": 0,
    "x = upper(x)": 3,
    "x = NULL, n = length(x)": 3,
    "n = CASE WHEN contains(x, 'a') THEN 1 ELSE n END": 3,
    "d = n": 0,
    "n = (SELECT max(id) FROM u)": 0,
}


def asking(sql: str) -> str:
    """The statement with calls for the functions of texts."""
    for name, call in (("upper(x)", ANSWER), ("length(x)", "llm_int('length', x)")):
        sql = sql.replace(name, call)
    for column in ("u.x", "x"):
        sql = sql.replace(f"contains({column}, 'a')", f"llm_filter('holds a', {column})")
    return sql


def session(planner: bool = True) -> Counted:
    return Counted(spoken, planner=planner).add("t", ROWS).add("u", OTHER)


@cache
def duck() -> duckdb.DuckDBPyConnection:
    """One database for all tests: to open one takes 20 ms."""
    other = duckdb.connect()
    other.register("given", ROWS)
    other.register("u", OTHER)
    return other


def expected(statement: str) -> tuple[int, list[tuple[object, ...]]]:
    """DuckDB's count and rows."""
    other = duck()
    other.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM given")
    (count,) = other.execute(statement).fetchone() or (0,)
    return count, other.execute("SELECT * FROM t ORDER BY id").fetchall()


def carried_out(db: Counted, statement: str) -> tuple[int, list[tuple[object, ...]]]:
    frame = db.session.sql(statement)
    assert db.model.calls == []
    (counted,) = frame.to_pylist()
    assert frame.trace.usage.values == len(db.model.calls)
    return counted["count"], db.rows("SELECT * FROM t")


@pytest.mark.parametrize("where", WHERES)
def test_delete(where: str) -> None:
    statement = f"DELETE FROM t WHERE {where}"
    right = expected(statement)
    assert carried_out(session(), statement) == right
    if "contains" in where:
        db = session()
        assert carried_out(db, asking(statement)) == right
        assert len(db.model.calls) <= (WHERES[where] or 0)
        assert carried_out(session(planner=False), asking(statement)) == right


@pytest.mark.parametrize("where", ["", *WHERES])
@pytest.mark.parametrize("values", SETS)
def test_update(values: str, where: str) -> None:
    if "(SELECT max" in values and not where:
        return  # without WHERE and calls the statement is DataFusion's, which has no subqueries
    statement = f"UPDATE t SET {values}" + (f" WHERE {where}" if where else "")
    right = expected(statement)
    assert carried_out(session(), statement) == right
    if asking(statement) != statement:
        db = session()
        assert carried_out(db, asking(statement)) == right
        assert len(db.model.calls) <= SETS[values] + (WHERES.get(where) or 0)


def test_random_statements(cases: int) -> None:
    """So many cases by 40."""
    wheres = [where for where in WHERES if "t.id" not in where]
    for seed in range(cases // 40):
        source = random.Random(f"changes {seed}")
        where = f"({source.choice(wheres)}) {source.choice(['AND', 'OR'])} "
        where += f"({source.choice(wheres)})"
        values = source.choice([*SETS])
        statement = f"DELETE FROM t WHERE {where}"
        if source.random() < 0.6:
            statement = f"UPDATE t SET {values} WHERE {where}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.PlanWarning)
            assert carried_out(session(), asking(statement)) == expected(statement), statement


def test_a_type_of_a_column_is_asked_for() -> None:
    db = session()
    db.session.sql("UPDATE t SET n = llm_map('length', x) WHERE id IN (1, 5)").collect()
    assert db.rows("SELECT n FROM t WHERE id IN (1, 5)") == [(1,), (3,)]
    assert {call.constraint.kind for call in db.model.calls} == {"integer"}


@pytest.mark.parametrize("kind", ["file", "view", "stream"])
def test_a_table_that_cannot_change_asks_nothing(kind: str, tmp_path: Path) -> None:
    db = session()
    pq.write_table(ROWS, tmp_path / "file.parquet")
    db.session.register_parquet("file", tmp_path / "file.parquet")
    db.session.sql("CREATE VIEW view AS SELECT * FROM t")
    db.session.register_dataset("stream", pa.dataset.dataset(ROWS))
    for statement in (f"DELETE FROM {kind} WHERE {FILTER}", f"UPDATE {kind} SET x = {ANSWER}"):
        with pytest.raises(bf.QueryError, match=f"rows of {kind} cannot be") as error:
            db.session.sql(statement)
        assert "CREATE TABLE" in (error.value.hint or "")
    assert db.model.calls == []


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM t WHERE id > 1 LIMIT 1", "there is no LIMIT"),
        (f"DELETE FROM t WHERE {FILTER} ORDER BY id LIMIT 2", "there is no ORDER|ORDER"),
        ("UPDATE t SET n = 1 WHERE id > 1 LIMIT 1", "LIMIT"),
        (f"UPDATE t SET n = u.id FROM u WHERE {FILTER}", "UPDATE … FROM"),
        (f"DELETE FROM nope WHERE {FILTER}", "unknown table 'nope'"),
        ("DELETE FROM t WHERE llm_filter('q', nope)", "unknown column 'nope'"),
        (f"UPDATE t SET n = 'no number' WHERE {FILTER}", "cast"),
    ],
)
def test_what_is_refused_changes_and_asks_nothing(statement: str, words: str) -> None:
    db = session()
    with pytest.raises(bf.BlendFusionError, match=f"(?i){words}"):
        db.session.sql(statement).collect()
    assert db.model.calls == []
    assert db.rows("SELECT * FROM t") == [tuple(row.values()) for row in ROWS.to_pylist()]


def test_an_error_stands_where_it_is_in_the_statement() -> None:
    db = session()
    with pytest.raises(bf.QueryError, match="'nope'") as error:
        db.session.sql(f"UPDATE t\nSET x = {ANSWER}\nWHERE nope > 1")
    start = len(f"UPDATE t\nSET x = {ANSWER}\nWHERE ")
    assert error.value.span == (start, start + 4)


def test_explain_changes_nothing() -> None:
    """DataFusion carries both statements out to explain them."""
    db = session()
    for statement in ("DELETE FROM t WHERE id = 1", "UPDATE t SET n = 9", "DELETE FROM t"):
        db.session.sql(f"EXPLAIN {statement}").collect()
        db.session.sql(statement).explain()
        db.session.sql(statement).explain_text()
    assert len(db.rows("SELECT id FROM t WHERE n IS DISTINCT FROM 9")) == 6
    plan = db.session.sql(f"EXPLAIN DELETE FROM t WHERE id > 3 AND {FILTER}").to_pydict()["plan"]
    assert "  filter 1: llm_filter('holds a', t.x)" in plan
    assert db.session.sql(f"DELETE FROM t WHERE id > 3 AND {FILTER}").estimate().total.values == 3
    assert db.model.calls == []


def test_a_frame_runs_on_the_rows_of_then() -> None:
    db = session()
    frame = db.session.sql(f"DELETE FROM t WHERE id > 3 AND {FILTER}")
    assert frame.to_pylist() == [{"count": 2}]
    assert frame.to_pylist() == [{"count": 0}]
    db.session.sql("INSERT INTO t VALUES (7, 'xa', 1, 1), (8, 'b', 1, 1)").collect()
    assert frame.to_pylist() == [{"count": 1}]
    assert [row[0] for row in db.rows("SELECT id FROM t")] == [1, 2, 3, 6, 8]


def test_a_budget_ends_a_statement_before_a_row() -> None:
    db = session()
    frame = db.session.sql(f"UPDATE t SET x = 'gone' WHERE {FILTER}")
    with pytest.raises(bf.BudgetExceeded):
        frame.with_budget(bf.Budget(values=1)).collect()
    assert "gone" not in str(db.rows("SELECT x FROM t"))
    assert frame.to_pylist() == [{"count": 3}]


def test_parameters() -> None:
    db = session()
    statement = f"DELETE FROM t AS t WHERE id > $least AND {FILTER}".replace(" AS t", "")
    assert db.session.sql(statement, param_values={"least": 4}).to_pylist() == [{"count": 1}]
    assert db.session.sql(statement, least="3").to_pylist() == [{"count": 1}]


def test_a_table_that_refuses_new_rows_keeps_its_own() -> None:
    db = session()
    db.session.sql("CREATE TABLE kept (id INT NOT NULL, x VARCHAR)")
    db.session.sql("INSERT INTO kept VALUES (1, 'a'), (2, 'b')").collect()
    with pytest.raises(bf.BlendFusionError):
        db.session.sql("UPDATE kept SET id = NULL WHERE llm_filter('holds a', x)").collect()
    assert db.rows("SELECT id, x FROM kept") == [(1, "a"), (2, "b")]


INTO = {
    f"SELECT id, {ANSWER} AS y INTO made FROM t WHERE id > 3 AND {FILTER}": 5,
    f"WITH c AS (SELECT * FROM t) SELECT id INTO TEMP TABLE made FROM c WHERE {FILTER} "
    "ORDER BY id LIMIT 1": 1,
    "SELECT * INTO made FROM t WHERE id IN (1, 2)": 0,
}


@pytest.mark.parametrize("statement", INTO)
def test_select_into(statement: str) -> None:
    """It asks what its query asks, and has the rows of its query."""
    db, other = session(), session()
    frame = db.session.sql(statement)
    assert frame.trace.usage.values == len(db.model.calls) <= INTO[statement]
    query = statement.replace("INTO TEMP TABLE made ", "").replace("INTO made ", "")
    assert sorted(db.rows("SELECT * FROM made")) == sorted(other.rows(query))
    with pytest.raises(bf.BlendFusionError, match="already exists"):
        db.session.sql(statement)


def test_explain_of_select_into_makes_no_table() -> None:
    db = session()
    db.session.sql(f"EXPLAIN SELECT id INTO made FROM t WHERE {FILTER}").collect()
    db.session.sql("EXPLAIN SELECT id INTO made FROM t").collect()
    assert not db.session.table_exist("made")
    assert db.model.calls == []


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM t WHERE id IN (SELECT u.id FROM u ORDER BY u.x LIMIT 1)",
        "DELETE FROM t WHERE id IN (SELECT max(id) FROM u GROUP BY x ORDER BY u.missing)",
        "UPDATE t SET n = 0",
        "UPDATE t SET n = 0 WHERE id = 1",
        f"DELETE FROM t WHERE {FILTER}",
    ],
)
def test_to_look_at_a_statement_changes_nothing(statement: str) -> None:
    """DataFusion 55 carries both out for a physical plan."""
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_arrow(ROWS, name="t")
    session.from_arrow(OTHER, name="u")
    with suppress(bf.QueryError):
        frame = session.sql(statement)
        with pytest.raises(bf.QueryError, match="has no execution plan") as caught:
            frame.execution_plan()
        assert "explain()" in str(caught.value.hint)
        frame.explain()
        frame.estimate()
        frame.schema()
        assert "not run" in repr(frame)
        assert "Not run" in frame._repr_html_()
    assert session.table("t").to_arrow_table().equals(ROWS)
