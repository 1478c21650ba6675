"""Built-in worked examples for prompts: a few for each kind of constraint.

They teach the form of an answer rather than its content: questions and labels differ between
examples, so that no answer is favoured and none of the user's labels is suggested.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from blendfusion.types import ConstraintKind

_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_SMALL = 1e9
"""Models of fewer parameters are shown the examples; larger ones were measured to answer as well
without (benchmarks/lab.md)."""


def shows_examples(option: bool | Literal["auto"], served: str | None = None) -> bool:
    """Whether prompts have the built-in examples, under the option ``shots``. ``auto``: those of a
    local model do, and those of a server's model, whose name is ``served``, if the name says that
    it has fewer than a billion parameters.

    >>> shows_examples("auto")
    True
    >>> [shows_examples("auto", name) for name in ("smollm2-135m", "qwen2.5-1.5b-instruct", "gpt")]
    [True, False, False]
    """
    if option != "auto":
        return option
    if served is None:
        return True
    units = {"b": 1e9, "m": 1e6}
    sizes = [float(number) * units[unit.lower()] for number, unit in _SIZE.findall(served)]
    return bool(sizes) and max(sizes) < _SMALL


@dataclass(frozen=True, slots=True)
class Shot:
    """One worked example: ``reply`` is the right output of the model."""

    question: str
    text: str
    reply: str
    options: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    """The names of a struct's fields, with their forms."""


_YES_NO = (
    Shot("Is this message about food?", "We had pancakes with maple syrup this morning.", "Yes"),
    Shot(
        "Is the customer satisfied?",
        "The zip broke after two days and nobody answers my mails.",
        "No",
    ),
    Shot("Does the text mention a place?", "We spent the summer in a village near Lisbon.", "Yes"),
    Shot("Is this an advertisement?", "I am running late, start dinner without me.", "No"),
)

_YES_NO_SCORED = (
    Shot(
        "Does the text mention a place?", "He has been learning the violin for three years.", "No"
    ),
    Shot(
        "Does the writer ask for something?",
        "Could you send me the address of the dentist?",
        "Yes",
    ),
    Shot("Is the customer satisfied?", "Arrived early and works perfectly, I love it.", "Yes"),
    Shot("Is this about health?", "Two new bridges will cross the river.", "No"),
    Shot("Is this junk mail?", "Mum, can you pick me up at five?", "No"),
    Shot(
        "Is the customer satisfied?",
        "The zip broke after two days and nobody answers my mails.",
        "No",
    ),
    Shot("Does the text mention a place?", "We spent the summer in a village near Lisbon.", "Yes"),
    Shot(
        "Is this junk mail?",
        "You have been selected! Reply now to collect your reward voucher, only today.",
        "Yes",
    ),
)
"""Most questions come twice, with either answer."""

ANSWERED_YES = tuple(shot for shot in _YES_NO_SCORED if shot.reply == "Yes")
"""Texts, each with a question whose answer is yes (``query_likelihood``)."""

_CHOICE = (
    Shot(
        "What is this text about?",
        "Slice the onions thinly and fry them in butter until golden.",
        "cooking",
        ("cooking", "gardening", "travel"),
    ),
    Shot(
        "Which department should answer?",
        "The invoice was paid twice, please refund one of the payments.",
        "billing",
        ("delivery", "billing", "returns", "other"),
    ),
    Shot(
        "What is the mood of this text?",
        "I cannot believe they lost my luggage again!",
        "angry",
        ("calm", "cheerful", "angry"),
    ),
)

_TEXT = (
    Shot("Which city is mentioned?", "The fair in Leipzig opens on Monday.", "Leipzig"),
    Shot("What did the customer buy?", "The kettle I ordered arrived with a dent.", "kettle"),
    Shot("Who is the author?", "A slim volume of poems by Ana Reyes.", "Ana Reyes"),
)

_INTEGER = (
    Shot("How many guests are there?", "A table for six, please, near the window.", "6"),
    Shot("How many pages does it have?", "The manual runs to 214 pages.", "214"),
    Shot("In which year was it built?", "The mill was built in 1887 and restored later.", "1887"),
)

_NUMBER = (
    Shot("What is the price?", "It costs 12.50 with postage.", "12.50"),
    Shot("How long is it in metres?", "A rope of 8.2 metres.", "8.2"),
    Shot("How many points did it get?", "The judges gave it seven points.", "7"),
)

_DATE = (
    Shot("When does it start?", "The course starts on 3 March 2021.", "2021-03-03"),
    Shot("When was it signed?", "Signed in Porto, October 15, 2009.", "2009-10-15"),
    Shot("What is the deadline?", "Hand in your work by 2018/06/30.", "2018-06-30"),
)

_TIMESTAMP = (
    Shot("When does it start?", "It starts on 3 March 2021 at 9:30.", "2021-03-03T09:30:00"),
    Shot("When was it sent?", "Sent: October 15, 2009, 6:05 pm", "2009-10-15T18:05:00"),
)

_LIST = (
    Shot(
        "Which colours are mentioned?",
        "A green door, white walls and a blue roof.",
        '["green", "white", "blue"]',
    ),
    Shot("Which tools does it need?", "All you need is a hammer.", '["hammer"]'),
    Shot("Which animals appear?", "Nothing moved in the old house.", "[]"),
)

_STRUCT = (
    Shot(
        "What does the text say about these fields?",
        "Ana Reyes, aged 34, lives in Porto.",
        '{"person": "Ana Reyes", "age": 34, "married": null}',
        fields=(("person", "text"), ("age", "whole number"), ("married", "true or false")),
    ),
    Shot(
        "What does the text say about these fields?",
        "All you need is a hammer, on offer until 3 March 2021.",
        '{"tools": ["hammer"], "price": null, "until": "2021-03-03"}',
        fields=(("tools", "list of text"), ("price", "number"), ("until", "date YYYY-MM-DD")),
    ),
    Shot(
        "What does the text say about these fields?",
        "The fair in Leipzig is free of charge.",
        '{"city": "Leipzig", "event": "fair", "free": true}',
        fields=(("city", "text"), ("event", "fair, concert or race"), ("free", "true or false")),
    ),
)

BUILT_IN: dict[ConstraintKind, tuple[Shot, ...]] = {
    "boolean": _YES_NO,
    "choice": _CHOICE,
    "integer": _INTEGER,
    "number": _NUMBER,
    "date": _DATE,
    "timestamp": _TIMESTAMP,
    "text": _TEXT,
    "regex": _TEXT,
    "list": _LIST,
    "struct": _STRUCT,
}
"""The examples of each kind of constraint. A score has none, since measurements showed that small
models separate more without them (benchmarks/lab.md)."""

SCORED: dict[ConstraintKind, tuple[Shot, ...]] = {**BUILT_IN, "boolean": _YES_NO_SCORED}
"""The examples where replies are scored by a local model, which computes the examples once for all
values, so that more of them cost almost nothing."""
