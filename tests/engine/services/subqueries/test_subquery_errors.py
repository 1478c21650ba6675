"""Wrong subqueries of calls are explained before any model call."""

from __future__ import annotations

from golden import FOLDER, check

import blendfusion as bf


def test_a_wrong_subquery_is_explained_before_any_model_call(update_golden: bool) -> None:
    model = bf.ScriptedModel(lambda call: True)
    session = bf.connect(model, progress="off")
    session.from_pydict({"id": [1, 2], "text": ["fine", "poor"], "stars": [5, 1]}, name="reviews")

    def comes_out(sql: str) -> str:
        try:
            session.sql(sql)
        except bf.BlendFusionError as error:
            return f"{type(error).__name__}: {error}"
        return "no error"

    check(FOLDER / "errors" / "subqueries.txt", comes_out, update=update_golden)
    assert model.calls == []
