"""Whose function a name means."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
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
