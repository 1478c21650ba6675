"""Queries that begin with FROM mean what they mean with SELECT first."""

from __future__ import annotations

from typing import Any

import pytest

import blendfusion as bf
from blendfusion.language.query_text.select_first import select_first
from blendfusion.language.query_text.tokenizer import sql_of

TURNED = {
    "FROM t": "SELECT * FROM t",
    "from t select Name": "select Name from t ",
    "FROM t SELECT a, b WHERE a > 1": "SELECT a, b FROM t WHERE a > 1",
    "FROM t JOIN u ON t.a = u.a SELECT t.a ORDER BY 1 LIMIT 2": "SELECT t.a FROM t JOIN u ON t.a = u.a ORDER BY 1 LIMIT 2",
    "SELECT * FROM (FROM t SELECT a)": "SELECT * FROM (SELECT a FROM t )",
    "FROM (FROM t SELECT a) SELECT a": "SELECT a FROM (SELECT a FROM t ) ",
    "WITH c AS (FROM t) FROM c SELECT Name;": "WITH c AS (SELECT * FROM t) SELECT Name FROM c ;",
    "WITH c AS (SELECT 1), d (x) AS MATERIALIZED (FROM c) FROM d": (
        "WITH c AS (SELECT 1), d (x) AS MATERIALIZED (SELECT * FROM c) SELECT * FROM d"
    ),
    "SELECT a FROM t UNION ALL FROM u SELECT a": "SELECT a FROM t UNION ALL SELECT a FROM u ",
    "FROM t SELECT * EXCEPT (a)": "SELECT * EXCEPT (a) FROM t ",
    "EXPLAIN FROM t SELECT Name": "EXPLAIN SELECT Name FROM t ",
    "CREATE TABLE x AS FROM t SELECT a": "CREATE TABLE x AS SELECT a FROM t ",
    "SELECT a IN (FROM u SELECT b) FROM t": "SELECT a IN (SELECT b FROM u ) FROM t",
    "FROM t SELECT (SELECT max(b) FROM u) AS m GROUP BY 1": "SELECT (SELECT max(b) FROM u) AS m FROM t GROUP BY 1",
}
SAME = (
    "SELECT count(*) FROM t",
    "SELECT a IS DISTINCT FROM b FROM t",
    "SELECT trim(FROM ' x ') FROM t",
    "SELECT extract(YEAR FROM d), substring(a FROM 2) FROM t",
    "WITH c AS (SELECT 1) SELECT count(*) FROM c",
    "DELETE FROM t",
    "SELECT 'FROM t' -- FROM",
)


@pytest.mark.parametrize("text", TURNED)
def test_select_comes_first(text: str) -> None:
    turned = select_first(sql_of(text))
    assert turned is not None
    assert " ".join(turned.sql.split()) == " ".join(TURNED[text].split())
    name = turned.sql.find("Name")
    if name >= 0:
        start, end = turned.origin(name, name + 4)
        assert text[start:end] == "Name"


@pytest.mark.parametrize("text", SAME)
def test_others_stay(text: str) -> None:
    assert select_first(sql_of(text)) is None


@pytest.fixture
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: len(call.values[0])), cache=None)
    made.from_pydict({"Name": ["ab", "c", "ab"], "Stars": [1, 2, 3]}, "Reviews")
    return made


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("FROM reviews SELECT name, count(*) AS n GROUP BY ALL ORDER BY name", [{"Name": "ab", "n": 2}, {"Name": "c", "n": 1}]),
        ("FROM reviews r SELECT r.stars WHERE stars > 2", [{"Stars": 3}]),
        ("FROM reviews WHERE stars = 2", [{"Name": "c", "Stars": 2}]),
        ("WITH c AS (FROM reviews SELECT stars AS s) FROM c SELECT max(s) AS m", [{"m": 3}]),
        ("FROM reviews SELECT llm_map('How long?', name) + 1 AS n WHERE stars < 3 ORDER BY n", [{"n": 2}, {"n": 3}]),
    ],
)  # fmt: skip
def test_names_in_any_case_and_types(session: bf.Session, query: str, rows: Any) -> None:
    assert session.sql(query).to_pylist() == rows


def test_an_error_names_the_place_in_the_text_of_the_user(session: bf.Session) -> None:
    query = "FROM reviews\nSELECT name, llm_map('How long?', name, optoins => ['a'])"
    with pytest.raises(bf.QueryError, match="no option 'optoins'") as caught:
        session.sql(query)
    assert caught.value.span is not None
    assert query[slice(*caught.value.span)].startswith("llm_map('How long?'")
