"""Clauses that DataFusion parses and ignores are refused: their rows would be wrong ones."""

from __future__ import annotations

import pytest

import blendfusion as bf


@pytest.fixture(scope="module")
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    session.from_pydict({"a": [1, 2, 2], "b": [1, 1, None]}, name="t")
    return session


@pytest.mark.parametrize(
    ("query", "clause", "hint"),
    [
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE", "random() < 0.1"),
        ("SELECT a FROM t AS x TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE", "LIMIT 100"),
        ("SELECT (SELECT count(*) FROM t TABLESAMPLE SYSTEM (1))", "TABLESAMPLE", "random()"),
        ("SELECT a FROM t SAMPLE (10)", "SAMPLE", "random()"),
        ("SELECT a FROM t PREWHERE a = 1", "PREWHERE", "Write WHERE"),
        ("SELECT a FROM t START WITH a = 1 CONNECT BY PRIOR a = b", "CONNECT BY", "RECURSIVE"),
        ("SELECT a, count(*) FROM t GROUP BY a WITH ROLLUP", "WITH ROLLUP", "GROUP BY ROLLUP"),
        ("SELECT a, b FROM t GROUP BY (a), (b) with cube", "WITH CUBE", "GROUP BY CUBE"),
        ("SELECT a FROM t GROUP BY a WITH TOTALS ORDER BY a", "WITH TOTALS", "GROUPING SETS"),
        ("SELECT * ILIKE 'a%' FROM t", "* ILIKE", "EXCLUDE"),
        ("SELECT t.* ILIKE 'a%' FROM t", "* ILIKE", "EXCLUDE"),
        ("CREATE VIEW v AS SELECT a FROM t TABLESAMPLE (1)", "TABLESAMPLE", "random()"),
    ],
)
def test_an_ignored_clause_is_an_error_with_its_place(
    session: bf.Session, query: str, clause: str, hint: str
) -> None:
    with pytest.raises(bf.QueryError) as raised:
        session.sql(query)
    assert raised.value.message == f"there is no {clause}"
    assert hint in (raised.value.hint or "")
    assert raised.value.span is not None
    assert clause.startswith(query[slice(*raised.value.span)].upper())


@pytest.mark.parametrize("dialect", ["mysql", "snowflake", "databricks"])
def test_a_dialect_makes_no_difference(session: bf.Session, dialect: str) -> None:
    with pytest.raises(bf.QueryError, match="there is no WITH ROLLUP"):
        session.sql("SELECT a, count(*) FROM t GROUP BY a WITH ROLLUP", dialect=dialect)


@pytest.mark.parametrize(
    "query",
    [
        "WITH rollup AS (SELECT a FROM t), cube (x) AS (SELECT 2) SELECT a, x FROM rollup, cube",
        "SELECT a AS prewhere, b tablesample, a * 2 AS connect, b totals, a AS sample FROM t",
        "SELECT a, count(*) FROM t GROUP BY ROLLUP (a)",
        "SELECT 'x TABLESAMPLE (1)' AS x, a FROM t -- GROUP BY a WITH ROLLUP",
        "SELECT a FROM t WHERE random() < 2 AND llm_filter('Is it?', b)",
    ],
)
def test_names_and_texts_like_these_are_no_clauses(session: bf.Session, query: str) -> None:
    assert session.sql(query).to_arrow_table().num_rows
