"""Answers that a predicate checks, and several typed fields of a group."""

from __future__ import annotations

import pytest

import blendfusion as bf


def connected(*answers: object, **options: object) -> tuple[bf.Session, bf.ScriptedModel]:
    """A session whose model gives the answers in turn about each text."""

    def answer(request: bf.Request) -> object:
        return answers[sum("earlier answer" in str(n) for n in request.task.columns[-1:])]

    model = bf.ScriptedModel(answer)
    session = bf.connect(model, cache=None, **options)
    session.from_pydict({"id": [1, 2, 3], "x": ["a", "b", None]}, name="t")
    return session, model


QUERY = "SELECT llm_int('How many?', x, check => 'answer < 10') AS n FROM t WHERE x IS NOT NULL"


def test_a_wrong_answer_is_asked_for_again_with_the_reason() -> None:
    session, model = connected(40, 4)
    frame = session.sql(QUERY)
    assert frame.to_pydict() == {"n": [4, 4]}
    assert [call.values for call in model.calls] == [("a",), ("b",), ("a", "40"), ("b", "40")]
    assert model.calls[2].question == (
        "How many? The earlier answer is wrong, as this must hold of it: answer < 10"
    )
    assert frame.trace.usage.values == 4
    session.sql(QUERY).collect()
    assert len(model.calls) == 4  # remembered


@pytest.mark.parametrize("planner", [True, False], ids=["planned", "plain"])
def test_an_answer_that_stays_wrong_has_failed(planner: bool) -> None:
    session, model = connected(40, 50, planner=planner)
    with pytest.warns(bf.AnswerWarning, match="does not satisfy the check"):
        assert session.sql(QUERY).to_pydict() == {"n": [None, None]}
    assert len(model.calls) <= 6  # each value twice more; the second time, the request is new
    with pytest.raises(bf.AnswerError, match="answer < 10"):
        session.sql(QUERY.replace("10'", "10', on_error => 'raise'")).collect()


def test_retries_are_limited_and_the_budget_counts_them() -> None:
    session, model = connected(40, 4)
    with pytest.warns(bf.AnswerWarning):
        session.sql(QUERY.replace("10'", "10', retries => 0")).collect()
    assert len(model.calls) == 2
    with pytest.raises(bf.BudgetExceeded):
        session.sql(QUERY, budget=bf.Budget(values=1)).collect()
    assert len(model.calls) == 3


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ("answer <", "Expected"),
        ("nosuch > 3", "nosuch"),
        ("answer + 1", "not true or false"),
        ("true); DROP TABLE t; SELECT (true", "not possible"),
        ("count(answer) > 0", "one value for each answer"),
    ],
)
def test_what_is_no_predicate_is_refused_before_any_call(check: str, problem: str) -> None:
    session, model = connected(40, 4)
    with pytest.raises(bf.ArgumentError, match=problem):
        session.sql(f"SELECT llm_int('How many?', x, check => '{check}') AS n FROM t")
    with pytest.raises(bf.ArgumentError, match="retries are of a check"):
        session.sql("SELECT llm_int('How many?', x, retries => 1) AS n FROM t")
    assert not model.calls


def test_null_satisfies_a_check_as_in_tables() -> None:
    session, model = connected({"low": None, "high": 3}, None)
    call = "llm_extract(x, 'low INT, high INT', check => 'answer[''low''] <= answer[''high'']', evidence => false)"
    rows = session.sql(f"SELECT {call} AS f FROM t WHERE id = 1").to_pylist()
    assert rows == [{"f": {"low": None, "high": 3}}]
    assert len(model.calls) == 1


def test_several_typed_fields_of_a_group_are_one_request() -> None:
    def answer(request: bf.Request) -> object:
        wrong = not any("earlier answer" in str(value) for value in request.values)
        return {"fault": "zip", "times": 20 if wrong else 2}

    model = bf.ScriptedModel(answer)
    session = bf.connect(model, cache=None)
    session.from_pydict({"x": ["the zip broke", "zip again"]}, name="t")
    call = "llm_qa('What is wrong?', x, returns => 'fault TEXT, times INT')"
    frame = session.sql(f"SELECT {call} AS f, {call}['times'] + 1 AS more FROM t")
    assert frame.to_pylist() == [{"f": {"fault": "zip", "times": 20}, "more": 21}]
    assert len(model.calls) == 1
    checked = call.replace("INT')", "INT', check => 'answer[''times''] <= 2')")
    assert session.sql(f"SELECT {checked} AS f FROM t").to_pylist() == [
        {"f": {"fault": "zip", "times": 2}}
    ]
    frame = session.table("t").aggregate(
        [], [bf.llm_qa("What is wrong?", "x", returns="fault TEXT, times INT").alias("f")]
    )
    assert frame.to_pylist() == [{"f": {"fault": "zip", "times": 20}}]
    assert len(model.calls) == 2


def test_a_schema_with_an_unknown_type_names_it() -> None:
    session, _ = connected(1, 1)
    with pytest.raises(bf.ArgumentError, match="NOSUCH"):
        session.sql("SELECT llm_qa('q', x, returns => 'a TEXT, b NOSUCH') FROM t")


def test_several_labels_and_rows_of_one_text() -> None:
    def answer(request: bf.Request) -> object:
        if request.constraint.kind == "struct":
            return {"people": [{"name": "Ann", "age": 3}, {"name": "Bo", "age": None}]}
        return ["price", "quality"]

    session = bf.connect(bf.ScriptedModel(answer), cache=None)
    session.from_pydict({"id": [1], "x": ["dear and bad"]}, name="t")
    labels = "llm_classify(x, ['price', 'quality', 'other'], returns => 'list')"
    query = f"SELECT {labels} AS labels FROM t WHERE array_has({labels}, 'price')"
    assert session.sql(query).to_pylist() == [{"labels": ["price", "quality"]}]
    people = (
        "llm_extract(x, 'people LIST<STRUCT<name TEXT, age INT>>', evidence => false)['people']"
    )
    rows = session.sql(f"SELECT id, unnest({people}) AS p FROM t").to_pylist()
    assert rows == [
        {"id": 1, "p": {"name": "Ann", "age": 3}},
        {"id": 1, "p": {"name": "Bo", "age": None}},
    ]


def test_evidence_of_several_fields_is_refused() -> None:
    session, _ = connected(1, 1)
    with pytest.raises(bf.ArgumentError, match="several fields"):
        session.sql("SELECT llm_map('q', x, returns => 'a TEXT, b INT', evidence => true) FROM t")
