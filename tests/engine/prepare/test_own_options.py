"""Options that are the values of the group itself: ``options => array_agg(x)``."""

from __future__ import annotations

import pytest

import blendfusion as bf

QUERY = "SELECT g, llm_qa('Which is worst?', x, options => array_agg(x)) AS w FROM t GROUP BY g ORDER BY g"


def connected() -> tuple[bf.Session, bf.ScriptedModel]:
    def answer(request: bf.Request) -> object:
        if request.constraint.kind == "list":
            return list(request.constraint.item.options[:2])  # type: ignore[union-attr]
        return max(request.constraint.options, key=len)

    model = bf.ScriptedModel(answer)
    session = bf.connect(model, cache=None)
    session.from_pydict(
        {
            "g": [1, 1, 1, 2, 2, 3, 4],
            "x": ["late", "broken\nbag", "late", "dear", "old", "one", None],
        },
        name="t",
    )
    return session, model


def test_an_answer_is_a_row_of_its_group() -> None:
    session, model = connected()
    frame = session.sql(QUERY)
    assert "→ one of array_agg(x)" in frame.explain_text()
    assert frame.estimate().total.values == 2
    assert [row["w"] for row in frame.to_pylist()] == ["broken\nbag", "dear", "one", None]
    # A group of one value needs no question, and none has no answer.
    assert [call.constraint.options for call in model.calls] == [
        *(("broken\nbag", "late"), ("dear", "old"))
    ]
    frame.to_pylist()
    assert len(model.calls) == 2


def test_several_rows_and_clauses() -> None:
    session, _ = connected()
    query = QUERY.replace("array_agg(x)", "array_agg(DISTINCT x), returns => 'list'")
    assert [row["w"] for row in session.sql(query).to_pylist()][:2] == [
        *(["broken\nbag", "late"], ["dear", "old"])
    ]
    query = QUERY.replace("array_agg(x))", "array_agg(x)) FILTER (WHERE x <> 'dear')")
    assert [row["w"] for row in session.sql(query).to_pylist()] == [
        "broken\nbag",
        "old",
        "one",
        None,
    ]


def test_failures_and_budgets() -> None:
    session, model = connected()
    with pytest.raises(bf.BudgetExceeded):
        session.sql(QUERY, budget=bf.Budget(values=1)).to_pylist()
    assert len(model.calls) == 1
    broken = bf.connect(bf.ScriptedModel(lambda request: "none of them"), cache=None)
    broken.from_pydict({"g": [1, 1], "x": ["a", "b"]}, name="t")
    with pytest.warns(bf.AnswerWarning):
        assert broken.sql(QUERY).to_pylist() == [{"g": 1, "w": None}]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("llm_qa('q', x, options => array_agg(g))", "are no values of the call"),
        ("llm_qa('q', x, options => array_agg(x) || 'a')", "are no values of the call"),
        ("llm_qa('q', x, options => array_agg(x), check => 'true')", "without check"),
        ("llm_map('q', x, options => array_agg(x))", "options of llm_qa"),
        ("llm_qa('q', x, options => upper(x))", "is not a literal"),
    ],
)
def test_other_options_are_refused(call: str, message: str) -> None:
    session, _ = connected()
    with pytest.raises(bf.ArgumentError, match=message):
        session.sql(f"SELECT {call} AS w FROM t")
