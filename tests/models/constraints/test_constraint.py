"""The four views of a constraint agree: regular expression, closed set, schema, check."""

from __future__ import annotations

import datetime
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.constraints.constraint import (
    MAX_LIST_ITEMS,
    closed_set,
    holds,
    regex_of,
    schema_of,
)
from blendfusion.types import Constraint, ConstraintKind

SCALARS = [
    Constraint("boolean"),
    Constraint("integer"),
    Constraint("number"),
    Constraint("date"),
    Constraint("timestamp"),
    Constraint("choice", options=("Red", "a.b", "x|y", 'say "hi"', "(", "naïve", "back\\slash")),
    Constraint("regex", pattern="[A-Z]{2}(-[0-9]+)?"),
    Constraint("text"),
]
LISTS = [Constraint("list", item=item) for item in SCALARS]
DATES = ("date", "timestamp")


def in_calendar(text: str) -> bool:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("constraint", SCALARS, ids=str)
@given(data=st.data())
def test_what_the_regex_admits_holds(constraint: Constraint, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(regex_of(constraint), fullmatch=True))
    if constraint.kind in DATES and not in_calendar(text):
        assert not holds(constraint, text)
    else:
        assert holds(constraint, text)


@pytest.mark.parametrize("constraint", LISTS, ids=str)
@given(data=st.data())
def test_what_the_regex_of_a_list_admits_is_json_that_holds(
    constraint: Constraint, data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(regex_of(constraint), fullmatch=True))
    elements = json.loads(text)
    assert len(elements) <= MAX_LIST_ITEMS
    item = constraint.item
    assert item is not None
    if item.kind not in DATES or all(in_calendar(element) for element in elements):
        assert holds(constraint, text)


@pytest.mark.parametrize("constraint", [c for c in SCALARS if c.kind != "text"], ids=str)
@given(text=st.text(max_size=12) | st.sampled_from(["true", "3", "-0", "1.5", "2024-02-29", "Red"]))
def test_what_holds_matches_the_regex(constraint: Constraint, text: str) -> None:
    if holds(constraint, text):
        assert re.fullmatch(regex_of(constraint), text)


@pytest.mark.parametrize("constraint", SCALARS, ids=str)
def test_a_closed_set_is_all_that_holds(constraint: Constraint) -> None:
    options = closed_set(constraint)
    if options is None:
        return
    assert all(holds(constraint, option) for option in options)
    assert not any(holds(constraint, text) for option in options for text in ("", option + " "))


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        ("boolean", ["true", "false"], ["True", "yes", "1", "", "true\n"]),
        ("integer", ["0", "-7", "123456789012345678"], ["007", "1.0", "+1", "1e3", "٣", "1\n"]),
        ("number", ["0", "-1.25", "3.000001"], [".5", "1.", "1,5", "nan", "1.0000001"]),
        (
            "date",
            ["2024-02-29", "1999-12-31"],
            ["2023-02-29", "2024-2-9", "24-02-29", "2024-02-31"],
        ),
        ("timestamp", ["2024-02-29T23:59:59"], ["2024-02-29", "2024-02-30T00:00:00"]),
    ],
)
def test_examples(kind: ConstraintKind, inside: list[str], outside: list[str]) -> None:
    constraint = Constraint(kind)
    assert [text for text in inside if not holds(constraint, text)] == []
    assert [text for text in outside if holds(constraint, text)] == []


@pytest.mark.parametrize("text", ["", "[", "{}", '"a"', "[null]", "[[1]]", '[{"a": 1}]', '["x"]'])
def test_what_is_no_list_of_integers_does_not_hold(text: str) -> None:
    assert not holds(Constraint("list", item=Constraint("integer")), text)


@pytest.mark.parametrize(
    ("constraint", "schema"),
    [
        (Constraint("boolean"), {"type": "boolean"}),
        (Constraint("integer"), {"type": "integer"}),
        (Constraint("number"), {"type": "number"}),
        (Constraint("text"), {"type": "string"}),
        (Constraint("choice", options=("a", "b")), {"type": "string", "enum": ["a", "b"]}),
        (Constraint("regex", pattern="a|b"), {"type": "string", "pattern": "^(a|b)$"}),
        (
            Constraint("list", item=Constraint("integer")),
            {"type": "array", "items": {"type": "integer"}, "maxItems": MAX_LIST_ITEMS},
        ),
    ],
    ids=str,
)
def test_the_schema_says_the_same(constraint: Constraint, schema: object) -> None:
    assert schema_of(constraint) == schema


@pytest.mark.parametrize("constraint", [*SCALARS[3:5], SCALARS[6]], ids=str)
@given(data=st.data())
def test_the_pattern_of_a_schema_admits_what_the_regex_admits(
    constraint: Constraint, data: st.DataObject
) -> None:
    pattern = schema_of(constraint)["pattern"]
    assert isinstance(pattern, str)
    text = data.draw(st.from_regex(regex_of(constraint), fullmatch=True))
    assert re.search(pattern, text)
