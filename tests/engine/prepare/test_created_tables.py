"""CREATE TABLE … AS, INSERT and COPY ask what their query asks, and have the rows of the query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scripts import Counted, spoken, unordered

import blendfusion as bf

ROWS = {"x": [f"v{n}" for n in range(40)], "g": [n % 4 for n in range(40)]}
QUERIES = {
    "a cheap predicate": ("SELECT x FROM t WHERE llm_filter('holds 3', x) AND g = 3", 10),
    "a limit": ("SELECT x FROM t WHERE llm_filter('holds v', x) LIMIT 3", 3),
    "a join": ("SELECT t.x FROM t JOIN k ON t.g = k.g WHERE llm_filter('holds 3', t.x)", 10),
    "a name": ("SELECT x, llm_int('length', x) FROM t WHERE g = 1", 10),
    "a name of its own": (
        "WITH a AS (SELECT * FROM t) SELECT llm_int('length', x) AS n FROM a",
        40,
    ),
    "a type": ("SELECT g, llm_map('length', x) = g AS same FROM t", 40),
    "two of one name": ("SELECT x, x FROM t WHERE g = 1 AND llm_filter('holds 3', x)", 10),
    "parentheses": ("(SELECT x FROM t WHERE llm_filter('holds 3', x) AND g = 3)", 10),
    "a semicolon": ("SELECT x FROM t WHERE llm_filter('holds 3', x) AND g = 3;", 10),
    "nothing below": ("SELECT llm_int('length', 'abc') AS n", 1),
}


def connected(**options: Any) -> Counted:
    return Counted(spoken, **options).add("t", ROWS).add("k", {"g": [2]})


@pytest.mark.parametrize("planner", [True, False])
@pytest.mark.parametrize("title", QUERIES)
def test_a_table_has_the_rows_of_its_query(title: str, planner: bool) -> None:
    query, most = QUERIES[title]
    db, other = connected(planner=planner), connected()
    frame = db.session.sql(f"CREATE OR REPLACE TABLE made AS\n{query}")
    assert frame.trace.usage.values == len(db.model.calls)
    assert len(db.model.calls) <= most or not planner
    made, expected = db.session.table("made"), other.session.sql(query)
    assert made.columns == expected.columns
    assert made.schema().types == expected.schema().types
    assert len(made.to_pylist()) == len(expected.to_pylist())
    if "LIMIT" not in query:
        rows = [tuple(row.values()) for row in expected.to_pylist()]
        assert unordered(tuple(row.values()) for row in made.to_pylist()) == unordered(rows)


def test_a_table_that_exists_asks_nothing() -> None:
    db = connected()
    query = "SELECT x FROM t WHERE llm_filter('holds 3', x)"
    db.session.sql("CREATE TABLE IF NOT EXISTS t AS " + query)
    with pytest.raises(bf.BlendFusionError, match="already exists"):
        db.session.sql(f"CREATE TABLE T AS {query}")
    for name in ("nowhere.made", 'datafusion."No".made', "no.public.made"):
        with pytest.raises(bf.QueryError):
            db.session.sql(f"CREATE OR REPLACE TABLE {name} AS {query}")
    assert db.model.calls == []
    db.session.sql("CREATE SCHEMA here")
    db.session.sql(f"CREATE TABLE datafusion.here.made AS {query} AND g = 3")
    assert len(db.model.calls) == 10
    assert len(db.rows("SELECT x FROM t")) == 40


@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
@pytest.mark.parametrize("head", ["/* table t */ ", "-- view t, table k\n", "\n/*1*//*2*/--3\n"])
def test_comments_may_stand_in_front_of_a_statement(head: str, kind: str) -> None:
    db = connected()
    query = "SELECT x FROM t WHERE llm_filter('holds 3', x) AND g = 3"
    for replaces in ("", "OR /* it */ REPLACE "):
        db.session.sql(f"{head}CREATE {replaces}{kind} -- of t\n made AS {query}")
        assert len(db.rows("SELECT x FROM made")) == len(db.rows(query)) == 5
    assert len(db.model.calls) == 10


def test_parameters_frames_and_budgets_hold_for_the_query() -> None:
    db = connected()
    query = "CREATE TABLE made AS SELECT x FROM t WHERE llm_filter('holds 3', x) AND g = $g"
    db.session.sql(query, param_values={"g": 3})
    assert len(db.model.calls) == 10
    frame = pd.DataFrame({"x": ["a3", "b"]})
    db.session.sql("CREATE TABLE more AS SELECT x FROM $f WHERE llm_filter('holds 3', x)", f=frame)
    assert db.rows("SELECT x FROM more") == [("a3",)]
    with pytest.raises(bf.BudgetExceeded):
        db.session.sql(
            "CREATE OR REPLACE TABLE more AS SELECT x FROM t WHERE llm_filter('holds 9', x)",
            budget=bf.Budget(values=3),
        )
    assert db.rows("SELECT x FROM more") == [("a3",)]


def test_types_of_the_table_say_what_is_asked_for() -> None:
    db = connected()
    db.session.sql(
        "CREATE TABLE made (a VARCHAR, n INT) AS SELECT x, llm_int('length', x) FROM k, t"
    )
    assert set(db.rows("SELECT n FROM made")) == {(2,), (3,)}


def test_an_error_stands_where_it_is_in_the_statement() -> None:
    db = connected()
    with pytest.raises(bf.QueryError, match="unknown column 'nope'") as raised:
        db.session.sql("CREATE TABLE made AS\nSELECT nope FROM t WHERE llm_filter('holds 3', x)")
    assert raised.value.span == (28, 32)


def test_an_analysed_plan_has_its_trace() -> None:
    db = connected()
    frame = db.session.sql(
        "EXPLAIN ANALYZE SELECT x FROM t WHERE g = 1 AND llm_filter('holds 3', x)"
    )
    assert frame.trace.usage.values == len(db.model.calls) == 10


INSERTS = {
    "a query": ("INSERT INTO kept SELECT x, llm_int('length', x) FROM t WHERE g = 1", 10),
    "other order": (
        "INSERT INTO kept (n, x) SELECT llm_int('length', x), x FROM t WHERE g = 1;",
        10,
    ),
    "a name": (
        "INSERT INTO kept (x) WITH q AS (SELECT x FROM t WHERE g = 1) SELECT x FROM q "
        "WHERE llm_filter('holds 3', x)",
        10,
    ),
    "values": ("INSERT INTO kept VALUES ('k', llm_int('length', 'abc'))", 1),
    "parentheses": ("INSERT INTO kept (SELECT x, llm_int('length', x) FROM t WHERE g = 1)", 10),
}


@pytest.mark.parametrize("planner", [True, False])
@pytest.mark.parametrize("title", INSERTS)
def test_an_insert_asks_what_its_query_asks(title: str, planner: bool) -> None:
    statement, most = INSERTS[title]
    found = []
    for db in (connected(planner=planner), connected(planner=False)):
        db.session.sql("CREATE TABLE kept (x VARCHAR, n BIGINT)")
        frame = db.session.sql(statement)
        assert "not run" in repr(frame)
        assert db.model.calls == []
        (counted,) = frame.to_pylist()
        rows = db.rows("SELECT x, n FROM kept")
        assert counted == {"count": len(rows)}
        assert frame.trace.usage.values == len(db.model.calls)
        assert not db.session.options.planner or len(db.model.calls) <= most
        found.append(unordered(rows))
        frame.collect()
        assert len(db.rows("SELECT x FROM kept")) == 2 * len(rows)
    assert found[0] == found[1]


def test_a_budget_ends_an_insert_before_a_row() -> None:
    db = connected()
    db.session.sql("CREATE TABLE kept (x VARCHAR)")
    frame = db.session.sql("INSERT INTO kept SELECT x FROM t WHERE llm_filter('holds v', x)")
    assert frame.estimate().total.values == 40
    with pytest.raises(bf.BudgetExceeded):
        frame.with_budget(bf.Budget(values=3)).collect()
    assert db.rows("SELECT x FROM kept") == []
    frame.collect()
    assert len(db.rows("SELECT x FROM kept")) == len(db.model.calls) == 40


@pytest.mark.parametrize("style", ["csv", "json", "parquet"])
def test_a_copy_asks_what_its_query_asks(style: str, tmp_path: Path) -> None:
    db = connected()
    file = tmp_path / f"rows.{style}"
    query = "SELECT x, llm_int('length', x) FROM t WHERE g = $g"
    frame = db.session.sql(f"COPY ({query}) TO '{file}' STORED AS {style}", param_values={"g": 1})
    assert frame.to_pylist() == [{"count": 10}]
    assert len(db.model.calls) == 10
    written = db.session.register_file(file, "written")
    assert written.columns == ["x", "llm_int('length', x)"]
    assert len(written.to_pylist()) == 10


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x INTO OUTFILE 'a.csv' FROM t WHERE llm_filter('holds v', x)",
        "SELECT x FROM t WHERE llm_filter('holds v', x) INTO OUTFILE 'a.csv'",
        "SELECT x FROM t INTO DUMPFILE 'a.csv'",
        "SELECT x INTO 'a.csv' FROM t",
        "EXPLAIN SELECT x INTO OUTFILE 'a.csv' FROM t",
    ],
)
def test_into_a_file_is_refused_before_anything_is_asked(query: str) -> None:
    """It made a table ``outfile``, and no file."""
    db = connected()
    with pytest.raises(bf.QueryError, match=r"INTO names no file(.|\n)*COPY \(SELECT …\) TO"):
        db.session.sql(query)
    assert not db.model.calls
    assert not db.session.table_exist("outfile")
