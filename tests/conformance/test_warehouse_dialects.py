"""The language-model functions of Snowflake, BigQuery and Databricks: what they become, and that
they run."""

from __future__ import annotations

import warnings

import pytest
from golden import FOLDER, cases, check

import blendfusion as bf
from blendfusion.models.constraints.constraint import possible_answers
from blendfusion.services.dialects import dispatch
from blendfusion.types import Constraint

WAREHOUSES = {warehouse.name: warehouse for warehouse in dispatch.WAREHOUSES}


def answer(request: bf.Request) -> object:
    """The answer, with its probability where it is that of a whole question."""
    if request.constraint.distribution:
        return dict.fromkeys(possible_answers(request.constraint), 1)
    if request.constraint.kind == "boolean":
        return {True: 1, False: 0}
    if request.constraint.meanings and request.constraint.scale:
        return 1
    return answer_of(request.constraint)


def answer_of(constraint: Constraint) -> object:
    if constraint.kind == "struct":
        return {field.name: answer_of(field.constraint) for field in constraint.fields}
    if constraint.kind == "list":
        return list(constraint.item.options[:1]) if constraint.item else []
    if constraint.kind == "choice":
        return constraint.options[0]
    return {"boolean": True, "integer": 3, "number": 1.5, "score": 5}.get(constraint.kind, "text")


@pytest.fixture
def model() -> bf.ScriptedModel:
    return bf.ScriptedModel(answer)


@pytest.fixture
def session(model: bf.ScriptedModel) -> bf.Session:
    made = bf.connect(model, progress="off", cache=None, show_values="on")
    rows = {"id": [1, 2, 3, 4], "t": ["a", "b", "b", None], "u": ["c", None, "d", "e"]}
    made.from_pydict({**rows, "city": ["Oslo", "Rome", "Rome", "Bern"]}, name="r")
    return made


@pytest.mark.parametrize("warehouse", WAREHOUSES)
def test_what_a_query_is_in_our_sql(
    warehouse: str, session: bf.Session, update_golden: bool
) -> None:
    def comes_out(text: str) -> str:
        try:
            return session.translated(text, dialect=warehouse)
        except bf.QueryError as error:
            return f"QueryError: {error}"

    check(FOLDER / "dialects" / f"{warehouse}.txt", comes_out, update=update_golden)


@pytest.mark.parametrize("warehouse", WAREHOUSES)
def test_every_function_has_a_case(warehouse: str) -> None:
    given = " ".join(case.given for case in cases(FOLDER / "dialects" / f"{warehouse}.txt"))
    for function in WAREHOUSES[warehouse].functions:
        assert f"{function.name}(" in given, function.name


@pytest.mark.parametrize(
    ("warehouse", "query"),
    [
        (warehouse, case.given)
        for warehouse in WAREHOUSES
        for case in cases(FOLDER / "dialects" / f"{warehouse}.txt")
        if not case.expected.startswith("QueryError") and "SIMILARITY" not in case.given.upper()
    ],
)
def test_every_form_runs(warehouse: str, query: str, session: bf.Session) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert session.sql(query, dialect=warehouse).to_pylist()


@pytest.mark.parametrize(
    ("warehouse", "query"),
    [
        ("snowflake", "SELECT id FROM r WHERE AI_FILTER('Is it bad? ' || t) AND id > 2"),
        ("bigquery", "SELECT id FROM r WHERE AI.IF(('Is it bad? ', t)) AND id > 2"),
        ("databricks", "SELECT id FROM r WHERE ai_classify(t, ARRAY('x', 'y')) = 'x' AND id > 2"),
    ],
)
def test_they_are_planned_like_ours(
    warehouse: str, query: str, session: bf.Session, model: bf.ScriptedModel
) -> None:
    assert session.sql(query, dialect=warehouse).to_pydict() == {"id": [3]}
    assert [call.values for call in model.calls] == [("b",)]


@pytest.mark.parametrize(
    ("warehouse", "query", "values"),
    [
        ("snowflake", "SELECT AI_FILTER('Good? ' || t) AS f FROM r WHERE id = 1", ("a",)),
        (
            "bigquery",
            "SELECT AI.IF(('Is ', t, ' in ', city)) AS f FROM r WHERE id = 1",
            ("a", "Oslo"),
        ),
    ],
)
def test_a_value_is_never_a_part_of_the_question(
    warehouse: str,
    query: str,
    values: tuple[str, ...],
    session: bf.Session,
    model: bf.ScriptedModel,
) -> None:
    session.sql(query, dialect=warehouse).collect()
    (call,) = model.calls
    assert call.values == values
    assert not any(value in call.question.split() for value in values)


def test_strings_in_three_quotes_are_strings(session: bf.Session) -> None:
    query = "SELECT '''it's''' AS a FROM r WHERE id = 1"
    assert session.sql(query, dialect="bigquery").to_pydict() == {"a": ["it's"]}


@pytest.mark.parametrize(
    ("warehouse", "name"), [(w, name) for w in WAREHOUSES for name in WAREHOUSES[w].refused]
)
def test_what_has_no_translation_is_refused_with_our_spelling(
    warehouse: str, name: str, session: bf.Session
) -> None:
    query = f"SELECT {name.lower()}(t) FROM r"
    with pytest.raises(bf.QueryError, match=f"column 8: {name} has no translation") as raised:
        session.sql(query, dialect=warehouse)
    assert raised.value.hint == WAREHOUSES[warehouse].refused[name]


@pytest.mark.parametrize("query", ["SELECT AI_FILTER('q', t) FROM r", "SELECT ai_gen(t) FROM r"])
def test_without_the_dialect_the_error_names_it(query: str, session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match="unknown function") as raised:
        session.sql(query)
    assert "dialect='snowflake'" in (raised.value.hint or "")
