"""Several questions about a value in one request, where tokens are paid: the value is sent once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.models.protocol.abilities import Abilities, abilities_of
from blendfusion.models.protocol.model import Model, OnAnswer, Values, answer_each
from blendfusion.models.protocol.together import open_questions
from blendfusion.models.services.joint_prompts.joint_model import JointAnswers, JointModel
from blendfusion.models.services.joint_prompts.row_packing import (
    SHORT_KINDS,
    parts_of,
    stated_question,
)
from blendfusion.types import Answer, Constraint, ModelInfo, StructField, Task, Usage

_MOST = 16
"""The most questions of one request."""
_MOST_EARLY = 100_000
"""Answers that may wait for their turn."""


class TogetherModel(JointModel):
    """Asks ``inner`` the open questions about a value in one request, each with a field of its own
    in a JSON object. A question without a valid answer there is asked alone."""

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._early: dict[tuple[Task, Values], str] = {}
        """Answers that came beside that to another question."""

    @property
    def abilities(self) -> Abilities:
        able = abilities_of(self.inner)
        return replace(
            able,
            asks_together=_is_short,
            odds_together=False,
            questions_at_once=_MOST,
            fingerprint="",
        )

    @property
    def info(self) -> ModelInfo:
        return self._info("together", "together", together="true")

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """Like ``answer``. The answers to the open questions about a value wait here for their
        turn."""
        if not _is_short(task):
            return answer_each(self.inner, task, values, on_answer)
        answers = JointAnswers(values, on_answer)
        groups: dict[tuple[Task, ...], list[int]] = {}
        for place, row in enumerate(values):
            early = self._early.pop((task.in_full, row), None)
            if early is not None:
                answers.settle(place, Answer(early, usage=Usage(values=1, beside=1)))
            elif others := self._open_about(task, row):
                groups.setdefault(others, []).append(place)
        for others, places in groups.items():
            joined = _joined_task((task, *others))

            def hear(
                number: int,
                answer: Answer,
                joined: Task = joined,
                others: tuple[Task, ...] = others,
                places: list[int] = places,
            ) -> None:
                place = places[number]
                own, *rest = parts_of(answer, joined)
                answers.spent[place] = replace(answer.usage, values=0, failed=0)
                self._keep(others, values[place], rest)
                if own is not None:
                    answers.settle(place, Answer(own))

            answer_each(self.inner, joined, [values[place] for place in places], hear)
        return answers.complete(self.inner, task)

    def _open_about(self, task: Task, row: Values) -> tuple[Task, ...]:
        """The other questions about a value that are open, and have no answer here."""
        others = dict.fromkeys(
            other.in_full
            for other, rows in open_questions().items()
            if other.in_full != task.in_full and _is_short(other) and row in rows
        )
        return tuple(other for other in others if (other, row) not in self._early)[: _MOST - 1]

    def _keep(self, tasks: Sequence[Task], row: Values, texts: Sequence[str | None]) -> None:
        if len(self._early) > _MOST_EARLY:
            self._early.clear()
        for task, text in zip(tasks, texts, strict=True):
            if text is not None:
                self._early[task, row] = text


def _is_short(task: Task) -> bool:
    """Whether a question about one row has a short answer, which is asked once."""
    usual = not (task.images or task.audio or task.aggregate or task.constraint.distribution)
    once = task.consistency == 1 and not task.reasoning
    return usual and once and task.constraint.kind in SHORT_KINDS


def _joined_task(tasks: Sequence[Task]) -> Task:
    """One question for the answers to all of ``tasks``."""
    names = [f"q{number}" for number in range(1, len(tasks) + 1)]
    lines = ["Answer each question by itself, in the field with its name."]
    lines += [f"{name}: {stated_question(task)}" for name, task in zip(names, tasks, strict=True)]
    fields = tuple(
        StructField(name, task.in_full.constraint) for name, task in zip(names, tasks, strict=True)
    )
    return Task(
        ingredient=tasks[0].ingredient,
        question=" ".join(lines).replace("{", "{{").replace("}", "}}"),
        constraint=Constraint("struct", fields=fields),
        columns=tasks[0].columns,
    )
