"""Describes the words that score a closed set's replies, in a line for EXPLAIN.

The line shows whether a question was recognised as one about an idea, and the opposite of that
idea.
"""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.models.constraints.constraint import closed_set
from blendfusion.models.services.prompts.prompt import BEHIND, replies_of
from blendfusion.models.services.verbalizer.query_likelihood import asks_same, way_for
from blendfusion.models.services.verbalizer.verbalize import verbalize
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.types import Task

_WORDS = 4
_LABELS = 6
_LETTERS = 40


def scored_by(
    task: Task, *beside: Task, wordings: bool, way: Way | None = None, similar: bool = False
) -> str | None:
    """The words of the replies of a boolean or a choice, the first few of each; None for replies
    that are scored by themselves alone, or generated. Only related words of one token count.
    ``beside``: the question behind the text, whose odds are added. ``way``: how such a question is
    scored. ``similar``: whether the similarity of text and label counts, too.

    >>> from blendfusion.types import Constraint
    >>> scored_by(Task("llm_filter", "Is it about sports?", Constraint("boolean")), wordings=True)
    'Yes, correct against No, wrong; sports, game, football, team, … against world, international, politics, war, …'
    >>> labels = Constraint("choice", options=("Film", "Novels"))
    >>> scored_by(Task("llm_classify", "", labels), wordings=True)
    'Film by film, movie, cinema, actor, …; Novels by novels'
    """
    if task.form in BEHIND and way is not None:
        if asks_same(task):
            return _same(_short(replies_of(task)[0]), way_for(task, way))
        return _behind(_short(replies_of(task)[0]), way)
    options = closed_set(task.constraint) or ()
    if not wordings or len(options) < 2:
        return None
    words = verbalize(task)
    if task.constraint.kind == "boolean":
        idea = words.idea
        sides = [words.own] if idea is None else [words.own, (idea.words, idea.against)]
        parts = [" against ".join(map(_few, side)) for side in sides]
        if way is not None:
            parts += [_behind(_short(replies_of(other)[0]), way) for other in beside]
        return "; ".join(parts)
    labels = [
        f"{_short(label)} by {_few(tuple(dict.fromkeys((*own, *related))))}"
        for label, own, related in zip(options, words.own, words.related, strict=True)
    ]
    left = len(labels) - _LABELS
    shown = "; ".join(labels[:_LABELS] + ([f"{left:,} more"] if left > 0 else []))
    return f"{shown}; and by the similarity of text and label" if similar else shown


def _behind(question: str, way: Way) -> str:
    """The scores of a question behind the text, and how well questions are answered by them."""
    parts = {
        f"the likelihood of “{question}” behind the text": way.likelihood,
        f"yes against no behind the text and “{question}”": way.answer,
        "their similarity": way.similarity,
    }
    measured = f" (mean area {way.area:.2f}, balanced accuracy {way.balanced:.2f})"
    named = ", ".join(part for part, weight in parts.items() if weight)
    return f"{named}{measured if way.area else ''}"


def _same(question: str, way: Way) -> str:
    """The scores of whether two values are the same."""
    parts = {
        f"the likelihood of “{question}” behind both values": way.likelihood,
        f"yes against no behind both values and “{question}”": way.answer,
        "their likeness": way.similarity,
    }
    return ", ".join(part for part, weight in parts.items() if weight)


def _few(words: Sequence[str]) -> str:
    return ", ".join([*map(_short, words[:_WORDS]), *["…"][: len(words) > _WORDS]])


def _short(word: str) -> str:
    folded = " ".join(word.split())
    return folded if len(folded) <= _LETTERS else f"{folded[: _LETTERS - 1]}…"
