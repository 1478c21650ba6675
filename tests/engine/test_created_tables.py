"""CREATE TABLE … AS asks what its query asks, and the table has the rows of the query."""

from __future__ import annotations

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
    assert db.model.calls == []
    assert len(db.rows("SELECT x FROM t")) == 40


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
