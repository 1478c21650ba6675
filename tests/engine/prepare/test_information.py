"""SHOW and ``information_schema`` know the functions and options of BlendFusion."""

from __future__ import annotations

from dataclasses import fields

import pytest
from datafusion import SessionContext

import blendfusion as bf
from blendfusion.udfs.functions.declarations import INGREDIENTS

FUNCTIONS = {ingredient.name for ingredient in INGREDIENTS}


@pytest.fixture
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(lambda call: "llm" in str(call.values[0])), cache=None)
    session.from_pydict({"text": ["good"]}, name="t")
    return session


def test_show_functions_lists_those_that_ask_a_model(session: bf.Session) -> None:
    session.sql(
        "SELECT llm_text('What?', text) FROM t"
    ).collect()  # registers a function for the call
    names = set(session.sql("SHOW FUNCTIONS").to_pydict()["function_name"])
    assert {name for name in names if name.startswith("llm_")} == FUNCTIONS
    assert "upper" in names
    (found,) = session.sql("SHOW FUNCTIONS LIKE 'llm_filter%';").to_pylist()
    assert found["syntax_example"] == "llm_filter(question, values…)"
    assert (found["return_type"], found["function_type"]) == ("BOOLEAN", "SCALAR")


def test_options_are_settings(session: bf.Session) -> None:
    query = "SELECT name, value FROM information_schema.df_settings WHERE name LIKE 'blendfusion.%'"
    found = dict(zip(*session.sql(query).to_pydict().values(), strict=True))
    assert set(found) == {f"blendfusion.{option.name}" for option in fields(bf.Options)}
    assert (found["blendfusion.planner"], found["blendfusion.delta"]) == ("true", "0.05")
    assert found["blendfusion.redact"] is None
    session.sql("SET blendfusion.on_error = 'raise'")
    assert session.sql("SHOW blendfusion.on_error").to_pylist() == [
        {"name": "blendfusion.on_error", "value": "raise"}
    ]
    assert session.sql("show all").to_arrow_table().num_rows > 100
    (verbose,) = session.sql("SHOW blendfusion.cache_size VERBOSE").to_pylist()
    assert verbose["description"].startswith("Maximum size of the file")
    with pytest.raises(bf.OptionError, match="Did you mean 'on_error'"):
        session.sql("SHOW blendfusion.on_eror")


def test_routines_are_a_table_like_any_other(session: bf.Session) -> None:
    query = """SELECT r.routine_name, count(*) AS n FROM datafusion.information_schema.routines AS r
        WHERE llm_filter('Does it ask a model?', r.routine_name) AND r.routine_name LIKE '%l%'
        GROUP BY 1 ORDER BY 1"""
    assert set(session.sql(query).to_pydict()["routine_name"]) == FUNCTIONS
    text = "SELECT 'information_schema.routines' AS x"
    assert session.sql(text).to_pylist() == [{"x": "information_schema.routines"}]
    session.sql("SELECT llm_text('What?', text) FROM t").collect()
    parameters = "SELECT DISTINCT specific_name FROM information_schema.parameters"
    assert not [n for n in session.sql(parameters).to_pydict()["specific_name"] if "llm" in n]


def test_reading_sessions_and_contexts_of_users_know_them(session: bf.Session) -> None:
    for known in (bf.connect(None, cache=None, read_only=True), bf.connect(ctx=SessionContext())):
        assert known.sql("SHOW blendfusion.planner").to_pydict()["value"] == ["true"]
        assert known.sql("SHOW FUNCTIONS LIKE 'llm_map'").count() == 1
        tables = known.sql("SELECT table_name FROM information_schema.tables").to_pydict()
        assert "functions" not in tables["table_name"]
