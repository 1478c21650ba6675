"""Structs: the views of the constraint agree, and answers in other spellings are read."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.constraints.constraint import holds, regex_of, schema_of
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.prompts.parse_reply import read_reply
from blendfusion.models.services.http.structured_output import wrap
from blendfusion.models.services.prompts.prompt import render
from blendfusion.types import Constraint, StructField, Task
from blendfusion.udfs.ask.decode import decode
from blendfusion.udfs.declare.returns import arrow_type
from blendfusion.udfs.declare.struct_schema import fields_of

FIELDS = """name TEXT, year INT COMMENT 'of release', price FLOAT, ok BOOLEAN, tags LIST,
            season IN ('spring', 'summer')"""


def struct(schema: str) -> Constraint:
    return Constraint("struct", fields=fields_of(schema))


FILM = struct(FIELDS)
NESTED = struct(
    '"say ""hi""" TEXT, at TIMESTAMP, who STRUCT(born DATE, alive BOOLEAN), parts STRUCT(n INT, x TEXT)[], '
    "moods IN ('a.b', 'c|d')[]"
)
WHOLE = '{"name": "Alien", "year": 1979, "price": 9.5, "ok": true, "tags": ["space"], "season": "spring"}'
EMPTY = '{"name": null, "year": null, "price": null, "ok": null, "tags": null, "season": null}'


@pytest.mark.parametrize("constraint", [FILM, NESTED], ids=["film", "nested"])
@given(data=st.data())
def test_what_the_regex_admits_holds_and_decodes(
    constraint: Constraint, data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(regex_of(constraint), fullmatch=True))
    assert holds(constraint, text)
    [row] = decode([text], arrow_type(constraint)).to_pylist()
    assert list(row) == [field.name for field in constraint.fields]
    assert [value is None for value in row.values()] == [
        value is None for value in json.loads(text).values()
    ]


SOME = {
    "text": st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=9),
    "integer": st.integers(-(10**12), 10**12),
    "number": st.integers(-(10**6), 10**6).map(lambda n: n / 8),
    "boolean": st.booleans(),
    "date": st.dates(),
}


@given(data=st.data())
def test_what_was_meant_comes_back(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(SOME)), min_size=1, max_size=4))
    constraint = Constraint(
        "struct",
        fields=tuple(StructField(f"f{i}", Constraint(k)) for i, k in enumerate(kinds)),  # type: ignore[arg-type]
    )
    meant = {f"f{i}": data.draw(st.none() | SOME[kind]) for i, kind in enumerate(kinds)}
    text = canonical(meant, constraint)
    assert holds(constraint, text)
    assert decode([text], arrow_type(constraint)).to_pylist() == [meant]
    assert read_reply(text, constraint) == text
    assert read_reply(wrap(text, constraint), constraint) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        WHOLE.replace('"year": 1979, ', ""),
        WHOLE.replace("}", ', "more": 1}'),
        WHOLE.replace('"price": 9.5, "ok": true', '"ok": true, "price": 9.5'),
        WHOLE.replace("1979", "1979.5"),
        WHOLE.replace("1979", "[1979]"),
        WHOLE.replace("true", "1"),
        WHOLE.replace('"spring"', '"autumn"'),
        WHOLE.replace('["space"]', '{"a": 1}'),
        WHOLE.replace('"year": 1979', '"year": 1979, "year": 1980'),
    ],
)
def test_what_is_no_such_object_does_not_hold(text: str) -> None:
    assert not holds(FILM, text)


def test_the_examples_hold_and_match_the_regex() -> None:
    for text in (WHOLE, EMPTY):
        assert holds(FILM, text)
        assert re.fullmatch(regex_of(FILM), text)


def test_the_schema_has_every_field_as_it_is_or_null() -> None:
    assert schema_of(struct("year INT COMMENT 'of release', who STRUCT(born DATE)")) == {
        "type": "object",
        "properties": {
            "year": {
                "description": "of release",
                "anyOf": [{"type": "integer"}, {"type": "null"}],
            },
            "who": {
                "anyOf": [
                    schema_of(struct("born DATE")),
                    {"type": "null"},
                ]
            },
        },
        "required": ["year", "who"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {
                "year": 1979,
                "name": "Alien",
                "price": 9.5,
                "ok": True,
                "tags": ["space"],
                "season": "spring",
            },
            WHOLE,
        ),
        ({}, EMPTY),
        ({"year": "1979"}, EMPTY.replace('"year": null', '"year": 1979')),
    ],
)
def test_a_mapping_is_written_in_the_order_of_the_fields(
    value: dict[str, object], text: str
) -> None:
    assert canonical(value, FILM) == text


@pytest.mark.parametrize(
    "value",
    [
        {"year": '1, "ok": true'},
        {"year": True},
        {"more": 1},
        {"name": ["a"]},
        {"tags": "a"},
        {"ok": "yes"},
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(value: dict[str, object]) -> None:
    assert not holds(FILM, canonical(value, FILM))


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (f'{{"answer": {WHOLE}}}', WHOLE),
        (f"```json\n{json.dumps(json.loads(WHOLE), indent=2)}\n```", WHOLE),
        ('{"year": "1,979"}', EMPTY.replace('"year": null', '"year": 1979')),
        ('{"ok": "Yes", "name": ""}', EMPTY.replace('"ok": null', '"ok": true')),
        ('{"season": "SPRING"}', EMPTY.replace('"season": null', '"season": "spring"')),
        ('{"price": 1.50}', EMPTY.replace('"price": null', '"price": 1.5')),
        ("{}", EMPTY),
    ],
)
def test_other_spellings_are_read(reply: str, text: str) -> None:
    assert read_reply(reply, FILM) == text


@pytest.mark.parametrize(
    "reply",
    ["Alien, 1979", "[1]", '{"error": "no film"}', '{"year": "in the seventies"}', '{"answer": 3}'],
)
def test_nothing_is_guessed(reply: str) -> None:
    assert read_reply(reply, FILM) is None


def test_a_field_may_be_called_answer() -> None:
    constraint = struct("answer TEXT")
    assert read_reply('{"answer": "x"}', constraint) == '{"answer": "x"}'
    assert read_reply('{"answer": {"answer": "x"}}', constraint) == '{"answer": "x"}'


def test_the_prompt_names_the_fields_and_what_they_mean() -> None:
    task = Task("llm_extract", "", struct(f"{FIELDS}, who STRUCT(born DATE)"), ("text",))
    prompt = render(task, shots=False)
    assert prompt.ask(("Alien",)) == (
        "Question: What does the text say about these fields?\n"
        "Fields: name (text); year (whole number: of release); price (number); ok (true or false); "
        "tags (list of text); season (spring or summer); who (object of born (date YYYY-MM-DD))\n"
        "Text: Alien"
    )


def test_its_shots_are_objects_of_their_fields() -> None:
    for asked, reply in render(Task("llm_extract", "", FILM, ("text",))).shots:
        line = next(line for line in asked.split("\n") if line.startswith("Fields: "))
        names = re.findall(r"(\w+) \(", line)
        assert list(json.loads(reply)) == names
