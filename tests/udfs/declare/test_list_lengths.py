"""How many items a list has: said by ``returns``, held by regex, schema and check alike."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts import Counted

import blendfusion as bf
from blendfusion.models.constraints.constraint import (
    MAX_LIST_ITEMS,
    holds,
    most_items,
    regex_of,
    schema_of,
)
from blendfusion.models.services.prompts.prompt import render
from blendfusion.types import Constraint, Task
from blendfusion.udfs.declare.returns import RETURNS, constraint_named

LENGTHS = {
    "list": (0, None),
    "list*": (0, None),
    "list+": (1, None),
    "list{3}": (3, 3),
    "list{0}": (0, 0),
    "list{1,4}": (1, 4),
    "list{2,}": (2, None),
    "LIST[int] {2}": (2, 2),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_a_type_may_say_how_many_items(name: str) -> None:
    constraint = constraint_named(name)
    assert constraint is not None
    assert (constraint.min_items, constraint.max_items) == LENGTHS[name]


@pytest.mark.parametrize(
    "name", ["list{101}", "list{4,2}", "list{}", "list{,3}", "int{3}", "list{-1}"]
)
def test_what_is_no_length_is_no_type(name: str) -> None:
    assert constraint_named(name) is None


@pytest.mark.parametrize("name", LENGTHS)
@given(count=st.integers(0, MAX_LIST_ITEMS))
def test_regex_and_check_agree_on_lengths(name: str, count: int) -> None:
    constraint = constraint_named(name)
    assert constraint is not None
    items: list[object] = [7] * count if constraint.item == Constraint("integer") else ["a"] * count
    inside = constraint.min_items <= count <= most_items(constraint)
    text = json.dumps(items)
    assert bool(re.fullmatch(regex_of(constraint), text)) == inside
    assert holds(constraint, text) == inside


def test_the_schema_has_the_lengths() -> None:
    assert schema_of(constraint_named("list{1,4}") or Constraint()) == {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "maxItems": 4,
    }


def test_a_list_that_is_longer_than_lists_usually_are() -> None:
    assert most_items(constraint_named("list{20,}") or Constraint()) == 20
    assert most_items(RETURNS["list"]) == MAX_LIST_ITEMS


@pytest.mark.parametrize(
    ("name", "said"),
    [("list{3}", "It has 3 items."), ("list{1,4}", "It has 1 to 4 items."), ("list", "JSON list.")],
)
def test_a_model_is_told_how_many(name: str, said: str) -> None:
    task = Task("llm_map", "Which?", constraint_named(name) or Constraint())
    assert render(task).instruction.endswith(said)


def test_options_and_a_length() -> None:
    db = Counted(lambda call: list(call.constraint.item.options[:2])).add("t", {"x": ["a"]})  # type: ignore[union-attr]
    sql = "SELECT llm_map('Which two?', x, options => ['p', 'q', 'r'], returns => 'list{2}') FROM t"
    assert db.rows(sql) == [(("p", "q"),)]
    assert str(db.model.calls[0].constraint) == "list of 2 one of {p, q, r}"


def test_a_list_of_another_length_is_no_answer() -> None:
    db = Counted(lambda call: ["one"]).add("t", {"x": ["a"]})
    with pytest.warns(bf.AnswerWarning, match="list of 2 text"):
        assert db.rows("SELECT llm_map('Which two?', x, returns => 'list{2}') FROM t") == [(None,)]
