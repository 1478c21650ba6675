"""The question of a task, as decision models are asked it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.protocol.model import Values
from blendfusion.models.scores.distribution import distribution_of
from blendfusion.models.services.prompts.prompt import render
from blendfusion.types import Answer, Task

Kind = Literal["boolean", "choice", "score"]
_MOST_LEVELS = 10
"""The most levels of a score that every protocol accepts."""
_BEGINNING = "Question: "


@dataclass(frozen=True, slots=True)
class Question:
    """A question with a closed set of answers.

    ``options``: those of a choice, in the user's order, with their ``meanings`` ('' without one).
    ``levels``: the points of a score, ascending, at most ten of its scale, evenly apart; their
    ``meanings`` if the user gave some."""

    kind: Kind
    text: str
    options: tuple[str, ...] = ()
    meanings: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()

    @property
    def level_names(self) -> list[str]:
        """A description of each level."""
        if self.meanings:
            return [*self.meanings]
        low, high = self.levels[0], self.levels[-1]
        ends = {low: " (the lowest)", high: " (the highest)"}
        return [f"{level} of {low} to {high}{ends.get(level, '')}" for level in self.levels]


def question_of(task: Task) -> Question | None:
    """The question of a task; None if a decision model cannot answer it."""
    constraint = task.constraint
    if task.images or task.audio or task.reasoning or task.form in ("query", "summary"):
        return None
    text = _text(task)
    if constraint.kind == "boolean":
        return Question("boolean", text)
    if constraint.kind == "choice" and constraint.options and not constraint.query:
        meanings = constraint.meanings or ("",) * len(constraint.options)
        return Question("choice", text, constraint.options, meanings)
    if constraint.kind == "score" and constraint.scale is not None:
        levels = _levels(*constraint.scale)
        return Question("score", text, meanings=constraint.meanings, levels=levels)
    return None


def unanswerable(task: Task, most_options: int | None = None) -> str | None:
    """Why a decision model does not answer a task; None if it does. ``most_options``: of a choice;
    None: any number."""
    question = question_of(task)
    if question is None:
        return "answers yes or no, choices and scores alone"
    if most_options is not None and len(question.options) > most_options:
        return f"answers choices of at most {most_options} options"
    return None


def states_of(task: Task, values: Sequence[Values]) -> list[Json]:
    """The values as a decision model reads them: a text, a list of the rows of a context, or an
    object by the names of the columns."""
    prompt = render(task, shots=False, listed=False)

    def state_of(row: Values) -> Json:
        if task.aggregate:
            return [value for value in row if value is not None]
        return row[0] or "" if len(row) == 1 else dict(prompt.named_values(row))

    return [*map(state_of, values)]


def answer_of(task: Task, question: Question, odds: Sequence[float]) -> Answer:
    """The answer by the probabilities of a question's options or levels; those of yes and no in
    this order. The first of equals counts."""
    if task.constraint.distribution:
        stated = dict(zip(question.levels or question.options, odds, strict=True))
        return Answer(distribution_of(stated, task.constraint))
    if question.kind == "score":
        expected = sum(level * p for level, p in zip(question.levels, odds, strict=True))
        return Answer(canonical(expected, task.constraint))
    texts = ("true", "false") if question.kind == "boolean" else question.options
    place = max(range(len(odds)), key=lambda at: (odds[at], -at))
    return Answer(texts[place], logprob=log(max(odds[place], 1e-300)))


def _text(task: Task) -> str:
    """The question in words, with the user's examples behind it."""
    lines = render(task, shots=False, listed=False).question.splitlines()
    text = lines[0].removeprefix(_BEGINNING) if lines else task.question
    shown = [f"{' | '.join(example.values)} → {example.answer}" for example in task.examples]
    return "\n".join([text, *(["Examples:", *shown] if shown else [])])


def _levels(low: int, high: int) -> tuple[int, ...]:
    """The points of a scale, or ten of them, evenly apart and rounded.

    >>> _levels(1, 5), _levels(0, 100)
    ((1, 2, 3, 4, 5), (0, 11, 22, 33, 44, 56, 67, 78, 89, 100))
    """
    if high - low < _MOST_LEVELS:
        return tuple(range(low, high + 1))
    step = (high - low) / (_MOST_LEVELS - 1)
    return tuple(round(low + step * place) for place in range(_MOST_LEVELS))
