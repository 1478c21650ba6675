"""Binding a call: its literals are checked where it stands, and equal calls are equal."""

from __future__ import annotations

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.types import Constraint
from blendfusion.udfs.declare.arguments import Constant, Value
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.returns import RETURNS, arrow_type
from blendfusion.udfs.functions.declarations import INGREDIENTS
from blendfusion.udfs.functions.llm_classify import LLM_CLASSIFY
from blendfusion.udfs.functions.llm_map import LLM_MAP

X = Value("x")


def mapped(*values: Value, **named: object) -> Call:
    return bind(LLM_MAP, [Constant("What?"), *(values or (X,))], dict(named))  # type: ignore[arg-type]


def test_equal_calls_are_equal_and_share_a_name() -> None:
    assert mapped() == mapped()
    assert mapped().name == mapped().name
    assert hash(mapped()) == hash(mapped())


@pytest.mark.parametrize(
    ("spelt", "canonical", "named"),
    [
        (" Yes", "true", {"returns": "bool"}),
        ("FALSE", "false", {"returns": "bool"}),
        (True, "true", {"returns": "bool"}),
        ("1,200", "1200", {"returns": "int"}),
        ("sports", "Sports", {"options": ["Sports", "World"]}),
        ("Yes", "Yes", {}),
        (" as it stands ", " as it stands ", {}),
    ],
)
def test_answers_of_examples_may_be_spelt_otherwise(
    spelt: object, canonical: str, named: dict[str, object]
) -> None:
    call = mapped(examples=[["a", spelt]], **named)
    assert call.task == mapped(examples=[["a", canonical]], **named).task
    assert call.task.examples[0].answer == canonical


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("maybe", {"returns": "bool"}),
        ("twelve", {"returns": "int"}),
        ("2024-02-31", {"returns": "date"}),
        ("Weather", {"options": ["Sports", "World"]}),
        ("ab", {"regex": "[a-z]"}),
    ],
)
def test_an_example_s_answer_that_the_call_cannot_give_is_refused(
    answer: str, named: dict[str, object]
) -> None:
    with pytest.raises(bf.ArgumentError, match=f"the answer '{answer}' of an example does not fit"):
        mapped(examples=[["a", answer]], **named)


@pytest.mark.parametrize(
    "other",
    [
        mapped(Value("y")),
        mapped(X, X),
        mapped(returns="int"),
        mapped(regex="[a-z]"),
        mapped(options=["a", "b"]),
        mapped(options=["b", "a"]),
        mapped(on_error="raise"),
        mapped(examples=[["a", "b"]]),
        bind(LLM_MAP, [Constant("Which?"), X], {}),
        bind(LLM_MAP, [Constant("What?"), X], {}, context=Constraint("integer")),
    ],
)
def test_what_changes_answers_changes_the_name(other: Call) -> None:
    assert other != mapped()
    assert other.name != mapped().name


@pytest.mark.parametrize("name", RETURNS)
def test_every_name_of_a_type_gives_its_arrow_type(name: str) -> None:
    assert mapped(returns=name).type == arrow_type(RETURNS[name])
    assert mapped(returns=name.upper()).type == arrow_type(RETURNS[name])


def test_labels_may_be_named_or_stand_last() -> None:
    last = bind(LLM_CLASSIFY, [X, Constant(["a", "b"])], {})
    named = bind(LLM_CLASSIFY, [X], {"labels": ["a", "b"]})
    assert last == named
    assert last.task.constraint == Constraint("choice", options=("a", "b"))


def test_numbers_as_options_are_texts() -> None:
    assert mapped(options=[1, 2.5]).task.constraint.options == ("1", "2.5")


@pytest.mark.parametrize(
    "named",
    [
        {"options": []},
        {"options": "a"},
        {"options": ["a", True]},
        {"options": ["a", "a"]},
        {"options": ["a", ""]},
        {"options": ["a"], "regex": "a"},
        {"regex": "("},
        {"regex": 3},
        {"regex": r"(a)\1"},
        {"returns": "integr"},
        {"returns": 3},
        {"examples": "a"},
        {"examples": [["a"]]},
        {"examples": [["a", "b", "c"]]},
        {"on_error": "ignore"},
        {"labells": ["a"]},
    ],
)
def test_a_wrong_option_is_an_error_with_a_hint(named: dict[str, object]) -> None:
    with pytest.raises(bf.ArgumentError, match=r"^llm_map: .*\nHint: "):
        mapped(**named)


@pytest.mark.parametrize("ingredient", INGREDIENTS, ids=lambda i: i.name)
def test_every_ingredient_refuses_a_call_without_arguments(ingredient: Ingredient) -> None:
    with pytest.raises(bf.ArgumentError, match=f"^{ingredient.name}: "):
        bind(ingredient, [], {})


@pytest.mark.parametrize("ingredient", INGREDIENTS, ids=lambda i: i.name)
def test_every_ingredient_says_what_it_is(ingredient: Ingredient) -> None:
    assert ingredient.summary
    assert ingredient.signature.startswith(ingredient.name + "(")
    assert callable(getattr(bf, ingredient.name))


def test_a_users_ingredient_may_not_take_a_name_of_ours() -> None:
    with pytest.raises(bf.ArgumentError, match="is an ingredient of BlendFusion"):
        bf.ingredient(lambda model, x: x, name="llm_map")


def test_placeholders_may_name_values_in_any_case() -> None:
    assert bind(LLM_MAP, [Constant("Is {X} good?"), X], {}).task.question == "Is {X} good?"
    with pytest.raises(bf.ArgumentError, match=r"refers to \{y\}"):
        bind(LLM_MAP, [Constant("Is {y} good?"), X], {})


def test_types_are_arrow_types() -> None:
    assert mapped(returns="list[date]").type == pa.list_(pa.date32())


def test_labels_may_say_what_they_mean() -> None:
    labels = Constant({"billing": "invoices  and\nrefunds", "other": "all else"})
    call = bind(LLM_CLASSIFY, [X, labels], {})
    assert call.task.constraint.options == ("billing", "other")
    assert call.task.constraint.meanings == ("invoices and refunds", "all else")
    assert call.text == "llm_classify(x, {'billing': 'invoices and refunds', 'other': 'all else'})"


@pytest.mark.parametrize("meaning", [None, 3, "", " "])
def test_what_a_label_means_is_text(meaning: str | int | None) -> None:
    with pytest.raises(bf.QueryError, match="what 'a' means must be text"):
        bind(LLM_CLASSIFY, [X, Constant({"a": meaning, "b": "x"})], {})


@pytest.mark.parametrize("spelled", ["{'a': 'one', 'b': 'two'}", "MAP {'a': 'one', 'b': 'two',}"])
def test_a_literal_of_labels_and_meanings(spelled: str) -> None:
    model = bf.ScriptedModel(lambda call: "a")
    session = bf.connect(model, cache=None)
    session.from_pydict({"x": ["v"]}, name="t")
    assert session.sql(f"SELECT llm_classify(x, {spelled}) AS f FROM t").to_pydict() == {"f": ["a"]}
    frame = session.table("t")
    frame.select(bf.llm_classify("x", {"a": "one", "b": "two"})).collect()
    assert {call.constraint.meanings for call in model.calls} == {("one", "two")}


@pytest.mark.parametrize("spelled", ["{'a': 'one', 'a': 'two'}", "{a: 'one'}", "{'a' 'one'}"])
def test_what_is_no_literal_of_labels_is_refused(spelled: str) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: "a"), cache=None)
    session.from_pydict({"x": ["v"]}, name="t")
    with pytest.raises(bf.QueryError):
        session.sql(f"SELECT llm_classify(x, labels => {spelled}) FROM t").collect()


def test_a_text_is_no_list_of_labels() -> None:
    with pytest.raises(bf.ArgumentError, match="labels must be a list of texts"):
        bf.llm_classify("text", "abc")


def test_targets_are_targets() -> None:
    with pytest.raises(bf.QueryError, match=r"targets=\{'recall': 0\.9\} are none"):
        bf.llm_filter("Is it?", "text", targets={"recall": 0.9})  # type: ignore[arg-type]
