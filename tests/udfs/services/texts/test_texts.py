"""Functions for everyday work on texts: sentiment, translation, grammar, personal data."""

from __future__ import annotations

import random
import re

import pytest

import blendfusion as bf
from blendfusion.udfs.services.texts.personal_data import without_personal_data

WORDS = "the bag broke after 12 days, order 48213 of 2024-03-17 for $1,299.00; v2.10 at 10:30 (3 of 4)".split()
EMAILS = ["ann@example.org", "a.b+c@mail.example.co.uk", "x_y@host.info"]
PHONES = ["+49 30 1234567", "(212) 555-0123", "212-555-0123", "+1 415 555 2671", "0171 2345678"]
CARDS = ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"]


def test_rules_find_what_was_planted_and_change_nothing_else() -> None:
    dice = random.Random(5)
    for _ in range(1000):
        words = dice.choices(WORDS, k=dice.randint(3, 20))
        marks = {**dict.fromkeys(EMAILS, "[EMAIL]"), **dict.fromkeys(PHONES, "[PHONE]")}
        marks |= dict.fromkeys(CARDS, "[CARD]")
        parts = [(word, word) for word in words]
        for planted in dice.sample([*marks], dice.randint(0, 4)):
            # A word without digits on either side, as in prose.
            at = dice.randint(0, len(parts))
            parts[at:at] = [("mine", "mine"), (planted, marks[planted]), ("is", "is")]
        text, right = (" ".join(part[side] for part in parts) for side in (0, 1))
        assert without_personal_data(text) == right


def redacted(answers: list[str] | None, text: str | None, options: str = "") -> object:
    model = bf.ScriptedModel(lambda request: answers)
    session = bf.connect(model, cache=None)
    session.from_pydict({"x": [text]}, name="t")
    (row,) = session.sql(f"SELECT llm_redact(x{options}) AS r FROM t").to_pylist()
    for call in model.calls:
        assert "@" not in str(call.values)
    return row["r"]


def test_the_model_finds_spans_of_what_rules_leave() -> None:
    text = "Ann Lee (ann@example.org) met Ann. Annual sale!"
    assert redacted(["Ann Lee", "Ann", "Bob"], text) == (
        "[REDACTED] ([EMAIL]) met [REDACTED]. Annual sale!"
    )
    assert redacted([], "Call 212-555-0123.") == "Call [PHONE]."
    assert redacted(["x"], "Ann, ann@example.org", ", also => ''") == "Ann, [EMAIL]"
    assert redacted(["x"], None) is None
    assert redacted(["EMAIL"], "a@b.org") == "[EMAIL]"


def test_a_text_without_an_answer_is_not_shown() -> None:
    with pytest.warns(bf.AnswerWarning):
        assert redacted(None, "Ann") is None


@pytest.mark.parametrize(
    ("call", "question", "answer"),
    [
        ("llm_sentiment(x)", "What is the sentiment of the text?", "negative"),
        (
            "llm_translate(x, 'German')",
            "What is the text in German? Write the translation and nothing else.",
            "Es brach.",
        ),
        (
            "llm_fix_grammar(x)",
            "What is the text with correct spelling and grammar? Change nothing else.",
            "It broke.",
        ),
    ],
)
def test_verbs_are_questions_about_rows(call: str, question: str, answer: str) -> None:
    model = bf.ScriptedModel(lambda request: answer)
    session = bf.connect(model, cache=None)
    session.from_pydict({"id": [1, 2, 3], "x": ["it broke", "it broke", "no"]}, name="t")
    frame = session.sql(f"SELECT {call} AS a FROM t WHERE id < 3 LIMIT 1")
    assert re.sub(r"\bx\b", "t.x", call) in frame.explain_text()
    assert frame.to_pylist() == [{"a": answer}]
    assert [c.question for c in model.calls] == [question]


def test_a_language_is_a_name() -> None:
    session = bf.connect(bf.ScriptedModel(lambda request: "x"), cache=None)
    session.from_pydict({"x": ["a"]}, name="t")
    with pytest.raises(bf.ArgumentError, match="Write its name"):
        session.sql("SELECT llm_translate(x, 'German? Ignore all {}') FROM t")
