"""Whose function a name means."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import udf

import blendfusion as bf


def test_a_function_of_the_session_goes_before_an_ingredient_of_the_process() -> None:
    @bf.ingredient
    def own_name(model: bf.UserModel, text: pa.StringArray) -> pa.StringArray:
        return model.ask("What?", text)

    model = bf.ScriptedModel(lambda call: "asked")
    with_function, without = bf.connect(model), bf.connect(model)
    for session in (with_function, without):
        session.from_pydict({"x": ["a"]}, name="t")
    with_function.register_udf(
        udf(lambda x: pc.utf8_upper(x), [pa.string()], pa.string(), "immutable", "own_name")
    )

    assert with_function.sql("SELECT own_name(x) AS y FROM t").to_pylist() == [{"y": "A"}]
    assert without.sql("SELECT own_name(x) AS y FROM t").to_pylist() == [{"y": "asked"}]


def test_text_in_verbs_may_call_ingredients() -> None:
    model = bf.ScriptedModel(
        lambda call: {"boolean": "a" in str(call.values[0]), "integer": 7}[call.constraint.kind]
    )
    frame = bf.connect(model).from_pydict({"x": ["a", "b"], "k": [1, 2]}, name="t")
    assert frame.filter("llm_map('Is there an a?', x) AND k < 5").to_pydict() == {
        "x": ["a"],
        "k": [1],
    }
    assert frame.select_exprs("llm_int('How many?', x)", "k + 1 AS next").to_pydict() == {
        "llm_int('How many?', x)": [7, 7],
        "next": [2, 3],
    }
    assert frame.with_column("n", "llm_int('How many?', x)").to_pydict()["n"] == [7, 7]
    with pytest.raises(bf.QueryError, match=r"Did you mean 'llm_filter'\?"):
        frame.filter("llm_fliter('Is there an a?', x)")


def test_show_tables_shows_what_the_user_registered() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True))
    session.from_pydict({"x": ["a"]}, name="t")
    tables = session.sql("show tables;").to_pydict()
    assert ("t", "BASE TABLE") in zip(tables["table_name"], tables["table_type"], strict=True)
    assert set(tables["table_catalog"]) == {"datafusion"}
