"""The question of a task, as decision models are asked it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from blendfusion.models.prompts.prompt import render
from blendfusion.types import Task

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
