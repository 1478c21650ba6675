"""The bank: our own short texts with yes/no questions, to choose ways of asking models by.

``bank/questions.jsonl`` has the questions of every kind of text, each in the part ``choose`` or in
the part ``report``: what is chosen on the first is reported on the second. ``bank/texts.jsonl`` has
the texts, each with the questions of its kind whose answer is yes; all others of the kind are no.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from public_questions import Asked, in_order

FOLDER = Path(__file__).with_name("bank")
PARTS = ("choose", "report")


def bank(part: str, rows: int) -> Iterator[Asked]:
    """Every question of a part with at most ``rows`` texts, as many with a yes as with a no if
    there are enough."""
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


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]
