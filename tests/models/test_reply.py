"""Replies of chat models: what is undone, and what is never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.constraints.constraint import holds
from blendfusion.models.http.parse_reply import read_reply
from blendfusion.types import Constraint

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


@given(
    st.text(),
    st.sampled_from(
        [Constraint(k) for k in ("boolean", "integer", "number", "date", "text")] + [COLOUR, TEXTS]
    ),
)
def test_whatever_is_read_holds(reply: str, constraint: Constraint) -> None:
    text = read_reply(reply, constraint)
    assert text is None or holds(constraint, text)
