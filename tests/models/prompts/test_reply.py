"""Replies of chat models: what is undone, and what is never guessed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.constraints.constraint import holds
from blendfusion.models.prompts.parse_reply import read_reply
from blendfusion.types import Constraint, StructField

COLOUR = Constraint("choice", options=("Red", "Light Blue"))
TEXTS = Constraint("list", item=Constraint())


@pytest.mark.parametrize(
    ("reply", "constraint", "text"),
    [
        (' {"answer": true} ', Constraint("boolean"), "true"),
        ('{"answer": "No"}', Constraint("boolean"), "false"),
        ("Yes.", Constraint("boolean"), "true"),
        ("**TRUE**", Constraint("boolean"), "true"),
        ("<think>\nIs it? No… wait.\n</think>\n\nyes", Constraint("boolean"), "true"),
        ('```json\n{"answer": 12}\n```', Constraint("integer"), "12"),
        ("1,234", Constraint("integer"), "1234"),
        ("+7", Constraint("integer"), "7"),
        ("3.0", Constraint("integer"), "3"),
        ('{"answer": "1,234,567.50"}', Constraint("number"), "1234567.5"),
        ("2.10", Constraint("number"), "2.1"),
        ('"2024-02-29"', Constraint("date"), "2024-02-29"),
        ("2024-02-29T00:00:00", Constraint("date"), "2024-02-29"),
        ("2024-02-29 12:30", Constraint("timestamp"), "2024-02-29T12:30:00"),
        ("light blue", COLOUR, "Light Blue"),
        ("'Red'.", COLOUR, "Red"),
        ('{"answer": ["a", "b"]}', TEXTS, '["a", "b"]'),
        ('["a","b"]', TEXTS, '["a", "b"]'),
        ('{"answer": [1, 2.0]}', Constraint("list", item=Constraint("integer")), "[1, 2]"),
        ("`AB-12`", Constraint("regex", pattern="[A-Z]{2}-[0-9]+"), "AB-12"),
        ('"A" and "B"', Constraint(), '"A" and "B"'),
        ("17", Constraint(), "17"),
    ],
)
def test_another_form_of_the_same_answer_is_read(
    reply: str, constraint: Constraint, text: str
) -> None:
    assert read_reply(reply, constraint) == text


@pytest.mark.parametrize(
    ("reply", "constraint"),
    [
        ("", Constraint()),
        ("Yes, but only on Sundays", Constraint("boolean")),
        ("1", Constraint("boolean")),
        ("about 3", Constraint("integer")),
        ("3.5", Constraint("integer")),
        ("1,23", Constraint("integer")),
        ("12 €", Constraint("number")),
        ("2023-02-29", Constraint("date")),
        ("2024-02-29T12:00:00", Constraint("date")),
        ("2024-02-29T12:00:00+02:00", Constraint("timestamp")),
        ("Reddish", COLOUR),
        ("Red or Light Blue", COLOUR),
        ('{"colour": "Red"}', COLOUR),
        ('{"answer": {"a": 1}}', TEXTS),
        ('{"answer": [{"a": 1}]}', TEXTS),
        ('{"answer": null}', Constraint("integer")),
        ("a, b", TEXTS),
    ],
)
def test_nothing_is_guessed(reply: str, constraint: Constraint) -> None:
    assert read_reply(reply, constraint) is None


ODD = (
    *("3.10", "3.9", "1e3", "007", "-1", "+1", "1_000", "NaN", "10.0", "1.", "null", "true", "[]"),
    *('"as is"', "'as is'", "`as is`", "as is", "as is.", "{}", '{"answer": "x"}', "```\nx\n```"),
    *(
        "<think>",
        "</think>",
        "<think>a</think>",
        "Rome  ",
        " Oslo",
        "\tBern",
        "caf\u00e9",
        "Stra\u00dfe",
    ),
    *("12345678901234567890123", "2024-02-30", "a, b", "a\\b", "%", "🙂", "Yes", "No", "*a*"),
)
"""Labels that look like something else."""
LABELS = Constraint("choice", options=ODD)


@pytest.mark.parametrize("label", ODD)
def test_a_reply_that_is_a_label_is_that_label(label: str) -> None:
    assert read_reply(label, LABELS) == label
    assert read_reply(json.dumps({"answer": label}), LABELS) == label
    assert read_reply(f"{label}\n", LABELS) == label
    assert read_reply(json.dumps([label]), Constraint("list", item=LABELS)) == listed(label)
    struct = Constraint("struct", fields=(StructField("f", LABELS),))
    assert read_reply(json.dumps({"f": label}), struct) == json.dumps(
        {"f": label}, ensure_ascii=False
    )


def listed(text: str) -> str:
    return json.dumps([text], ensure_ascii=False)


@pytest.mark.parametrize("written", ["3.10", "1e3", "10.0", "007", "12345678901234567890123"])
def test_a_label_may_be_a_number_of_json(written: str) -> None:
    reply = f'{{"answer": {written}}}'
    is_json = written != "007"
    assert read_reply(reply, LABELS) == (written if is_json else None)


@pytest.mark.parametrize(
    ("options", "reply", "label"),
    [
        (("Rome  ", "Oslo  "), "Rome", "Rome  "),
        (("Rome  ", "Oslo  "), "oslo.", "Oslo  "),
        (("Rome  ", "Rome"), "Rome", "Rome"),
        (("Rome  ", "Rome"), "Rome  ", "Rome  "),
        (("Rome  ", " Rome"), "Rome", None),
        (("cafe\u0301", "bar"), "caf\u00e9", "cafe\u0301"),
        (("caf\u00e9", "bar"), "CAFE\u0301", "caf\u00e9"),
        (("US", "us"), "us", "us"),
        (("US", "us"), "Us", None),
    ],
)
def test_a_label_is_met_as_closely_as_possible(
    options: tuple[str, ...], reply: str, label: str | None
) -> None:
    constraint = Constraint("choice", options=options)
    assert read_reply(reply, constraint) == label
    assert read_reply(json.dumps({"answer": reply}), constraint) == label


@pytest.mark.parametrize(
    ("pattern", "reply", "text"),
    [
        ("[0-9.]+", "3.10", "3.10"),
        ("[0-9e]+", "1e3", "1e3"),
        ("[0-9]+", "007", "007"),
        ("[0-9.]+", '{"answer": 3.10}', "3.10"),
        ('"[a-z]+"', '"ab"', '"ab"'),
        ("[a-z]+", '"ab"', "ab"),
        (" [a-z]+ ", " ab ", " ab "),
        ("[a-z]+", " ab\n", "ab"),
        (".+", '{"answer": "ab"}', "ab"),
        (".+", '{"other": "ab"}', '{"other": "ab"}'),
        (".+", "<think>a</think>ab", "ab"),
        (".+", "<think>a", None),
        ("[A-Z]+", "`AB`", "AB"),
    ],
)
def test_a_pattern_sees_what_was_written(pattern: str, reply: str, text: str | None) -> None:
    assert read_reply(reply, Constraint("regex", pattern=pattern)) == text


@pytest.mark.parametrize(
    "day", ["0001-01-01", "0400-02-29", "1492-10-12", "1815-06-09", "9999-12-31"]
)
def test_every_day_of_the_calendar_is_a_date(day: str) -> None:
    assert read_reply(f'{{"answer": "{day}"}}', Constraint("date")) == day
    moment = f"{day}T12:00:00"
    assert read_reply(moment, Constraint("timestamp")) == moment
    struct = Constraint("struct", fields=(StructField("d", Constraint("date")),))
    assert read_reply(f'{{"d": "{day}"}}', struct) == f'{{"d": "{day}"}}'


EVENT = Constraint(
    "struct",
    fields=(
        StructField("name", Constraint()),
        StructField("day", Constraint("date")),
        StructField("size", Constraint("integer")),
        StructField("tags", Constraint("list", item=Constraint("choice", options=("a", "b")))),
        StructField("at", Constraint("struct", fields=(StructField("city", Constraint()),))),
    ),
)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("name", "fair", ["x"]),
        ("day", "2024-02-29", "2023-02-29"),
        ("size", 7, "many"),
        ("size", 7, 1e99),
        ("size", 7, float("nan")),
        ("tags", ["a"], ["c"]),
        ("at", {"city": "Rome"}, "Rome"),
    ],
)
def test_a_field_that_fails_is_null_by_itself(field: str, good: object, bad: object) -> None:
    other = {"name": "fair"} if field != "name" else {"size": 3}
    kept = read_reply(json.dumps({field: good, **other}), EVENT)
    assert kept is not None
    assert json.loads(kept)[field] == good
    left = read_reply(json.dumps({field: bad, "unknown": 1, **other}), EVENT)
    assert left is not None
    assert json.loads(left) == json.loads(kept) | {field: None}
    assert read_reply(json.dumps({field: bad}), EVENT) is None


@given(
    st.text(),
    st.sampled_from(
        [Constraint(k) for k in ("boolean", "integer", "number", "date", "text")] + [COLOUR, TEXTS]
    ),
)
def test_whatever_is_read_holds(reply: str, constraint: Constraint) -> None:
    text = read_reply(reply, constraint)
    assert text is None or holds(constraint, text)
