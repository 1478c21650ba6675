"""The bank: our own short texts with yes/no questions, to choose ways of asking models by.

``questions.jsonl`` has the questions of every kind of text, each in the part ``choose`` or in the
part ``report``: choices are made on the first and reported on the second. ``texts.jsonl`` has the
texts, each with the questions of its kind whose answer is yes; all others of the kind are no.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

FOLDER = Path(__file__).parent

Part: TypeAlias = Literal["choose", "report"]


@dataclass(frozen=True)
class BankQuestion:
    """A question with the texts it is asked about. ``yes``: whether the answer to each is yes."""

    name: str
    kind: str
    question: str
    texts: tuple[str, ...]
    yes: tuple[bool, ...]


def bank(part: Part, rows: int) -> Iterator[BankQuestion]:
    """Every question of a part with at most ``rows`` texts, as many with a yes as with a no if
    there are enough.

    >>> next(bank("choose", rows=2)).question
    'Does the customer want their money back?'
    """
    texts = _lines("texts.jsonl")
    for question in _lines("questions.jsonl"):
        if question["part"] != part:
            continue
        answers = {
            text["text"]: question["id"] in text["yes"]
            for text in texts
            if text["kind"] == question["kind"]
        }
        yield in_order(question["id"], question["kind"], question["question"], answers, rows)


def in_order(
    name: str, kind: str, question: str, answers: Mapping[str, bool], rows: int
) -> BankQuestion:
    """The question with at most ``rows`` of the texts, as many with a yes as with a no if there are
    enough, in an order that a hash decides."""
    order = sorted(answers, key=_hash)
    yes = [text for text in order if answers[text]]
    no = [text for text in order if not answers[text]]
    most = rows // 2
    some = {*yes[: max(most, rows - len(no))], *no[: max(most, rows - len(yes))]}
    kept = tuple(text for text in order if text in some)
    return BankQuestion(name, kind, question, kept, tuple(answers[text] for text in kept))


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def _hash(text: str) -> bytes:
    return hashlib.blake2s(text.encode(), digest_size=8).digest()
