"""A column's name in single quotes is a text, which plans; a warning doubts it."""

from __future__ import annotations

import warnings

import pytest

import blendfusion as bf


@pytest.fixture
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    session.from_pydict({"order date": [1, 2], "text": ["a", "b"]}, name="t")
    return session


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t WHERE 'order date' > 1::TEXT",
        "SELECT * FROM t WHERE text = 'a' AND 'order date' IS NOT NULL",
        "SELECT * FROM t WHERE 'order date' >= DATE '2024-01-01'",
        "SELECT * FROM t WHERE 'order date' NOT IN ('x', 'y')",
        "SELECT 'order date' FROM t",
        "SELECT text FROM t ORDER BY 'order date' DESC",
        "SELECT count(*) FROM t AS x GROUP BY 'order date'",
        "SELECT DISTINCT 'order date', text FROM t WHERE llm_filter('Is it?', text)",
        "SELECT * FROM (SELECT text FROM t WHERE 'order date' = 'x') AS s",
    ],
)
def test_a_column_in_single_quotes_is_doubted(session: bf.Session, query: str) -> None:
    with pytest.warns(bf.PlanWarning) as warned:
        session.sql(query)
    assert [str(warning.message) for warning in warned] == [
        "'order date' is a text, the same in every row; the column is \"order date\", without "
        "single quotes."
    ]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'text' AS kind, text FROM t",
        "SELECT text FROM t WHERE text = 'text' OR text IN ('text', 'order date')",
        "SELECT coalesce(text, 'text') FROM t",
        "SELECT 'other' FROM t WHERE 'a' = text",
        "SELECT text FROM t WHERE 'text' = llm_classify(text, ['text', 'other'])",
        "SELECT text FROM t WHERE 'text' = ANY(llm_list('Which?', text))",
        "SELECT text FROM t WHERE text = ANY(SELECT 'text')",
        "SELECT text FROM t WHERE 'text' IN (SELECT text FROM t)",
        "SELECT 'text'",
        "SELECT llm_filter('Is it monday?') AS monday",
        "SELECT llm_text('Which capital?'), text FROM t",
        "SELECT llm_filter('Is {text} it?', text) FROM t WHERE llm_filter('Is it?', text)",
    ],
)
def test_texts_that_are_meant_are_not(session: bf.Session, query: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.sql(query)
