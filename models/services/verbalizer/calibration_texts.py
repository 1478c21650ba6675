"""Calibration texts that represent "any text", by the kind of text in a question.

A model's answers to them form its prior (``calibration``). They resemble data without coming from
it, and cover all sides of common questions: half of the reviews praise, half of the messages are
unwanted, articles and questions have various subjects.
"""

from __future__ import annotations

import re
from pathlib import Path

from blendfusion.types import Task

TEXTS = Path(__file__).with_name("calibration_texts.txt")
"""One text per line, under the words that name its kind in a question; first, texts of any kind:
statements, questions, messages and headlines."""


def _read(text: str) -> dict[str, tuple[str, ...]]:
    """The texts of each kind, by each of its words."""
    found = {}
    for section in f"\n{text}".split("\n# ")[1:]:
        words, *texts = section.splitlines()
        found.update(dict.fromkeys(words.split(), tuple(filter(None, texts))))
    return found


BANKS = _read(TEXTS.read_text("utf-8"))
_ANY = "any"
ANY = BANKS[_ANY]
"""Texts of any kind."""


def bank(task: Task) -> tuple[str, ...]:
    """The texts for ``task``: of the kind that its question names first, else one of its columns,
    else of any kind.

    >>> bank(Task("llm_filter", "Is this review positive?"))[0]
    'Best purchase of the year, works like a charm.'
    >>> bank(Task("llm_filter", "Is it red?", columns=("name",)))[1]
    'She walked along the river until it got dark.'
    """
    for part in (task.question, *task.columns):
        for word in re.findall("[a-z]+", part.lower()):
            if word in BANKS and word != _ANY:
                return BANKS[word]
    return ANY
