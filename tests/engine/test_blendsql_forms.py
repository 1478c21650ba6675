"""BlendSQL's queries as their authors wrote them: aliases in WHERE, large inferred sets, limits."""

from __future__ import annotations

import pytest

import blendfusion as bf

PEOPLE = {"name": ["ann", "bob", "cid"], "city": ["Oslo", "Rome", "Oslo"]}


def session(script: object) -> bf.Session:
    made = bf.connect(bf.ScriptedModel(script), cache=None, progress="off")  # type: ignore[arg-type]
    made.from_pydict(PEOPLE, name="people")
    return made


def test_where_names_an_alias_of_the_select_list() -> None:
    opened = session(lambda request: request.values[0] == "Oslo")
    query = """SELECT name, {{LLMMap('In Norway?', city)}} AS north FROM people
        WHERE NORTH = TRUE AND name != 'ann'"""
    frame = opened.sql(query, dialect="blendsql")
    assert frame.to_pylist() == [{"name": "cid", "north": True}]
    assert frame.trace.usage.values == 2


def test_a_column_hides_an_alias_of_its_name() -> None:
    opened = session(lambda request: "x")
    query = "SELECT upper(city) AS name FROM people WHERE name = 'bob'"
    assert opened.sql(query, dialect="blendsql").to_pylist() == [{"name": "ROME"}]


def test_an_alias_in_a_subquery_is_that_of_the_subquery() -> None:
    opened = session(lambda request: "x")
    query = """SELECT name AS who FROM people
        WHERE city IN (SELECT lower(city) AS low FROM people WHERE low = 'rome') OR who = 'ann'"""
    assert opened.sql(query, dialect="blendsql").to_pylist() == [{"who": "ann"}]


def test_a_set_that_was_inferred_and_is_too_large_is_free_text() -> None:
    opened = session(lambda request: "value 7")
    opened.from_pydict({"name": [f"value {n}" for n in range(1001)]}, name="many")
    query = "SELECT name FROM many WHERE name = {{LLMQA('Which?')}}"
    with pytest.warns(bf.AnswerWarning, match=r"more than 1,000 values: the answer is a free text"):
        assert opened.sql(query, dialect="blendsql").to_pylist() == [{"name": "value 7"}]
    asked = "SELECT name FROM many WHERE name = {{LLMQA('Which?', options=many.name)}}"
    with pytest.raises(bf.QueryError, match="gives more than 1,000 values"):
        opened.sql(asked, dialect="blendsql").collect()


def test_a_set_that_was_inferred_and_is_small_is_closed() -> None:
    seen: list[tuple[str, ...]] = []

    def script(request: bf.Request) -> str:
        seen.append(request.constraint.options)
        return "bob"

    query = "SELECT city FROM people WHERE name = {{LLMQA('Who?')}}"
    assert session(script).sql(query, dialect="blendsql").to_pylist() == [{"city": "Rome"}]
    assert seen == [("ann", "bob", "cid")]


def test_max_tokens_has_no_effect() -> None:
    query = "SELECT {{LLMQA('Who?', (SELECT name FROM people), max_tokens=20)}} AS who"
    assert session(lambda request: "ann").sql(query, dialect="blendsql").to_pylist() == [
        {"who": "ann"}
    ]
