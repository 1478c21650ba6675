"""Of all answers of a run a few, and what they have in common: bounded, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from blendfusion.models.protocol.model import Values
from blendfusion.reports.answer_warnings import alike
from blendfusion.types import Answer, Task

_EACH = 2
"""Samples of one answer, before another may be shown."""
_SAMPLES = 8
_REASON = 500
"""Characters of a reason that tell its kind."""
_COUNTED = 10_000
"""Different answers that are counted; answers in prose are mostly all different."""


@dataclass(slots=True)
class TaskSample:
    """What was answered to one task."""

    task: Task
    asked: int = 0
    """Requests, cached and failed ones among them."""
    answers: Counter[str | None] = field(default_factory=Counter)
    """The valid answers. Only the first 10,000 different ones are counted; ``others`` are the rest."""
    others: int = 0
    different: list[tuple[Values, Answer]] = field(default_factory=list)
    alike: list[tuple[Values, Answer]] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    """Kinds of reasons: see ``failures.alike``."""
    failed: dict[str, tuple[Values, str]] = field(default_factory=dict)
    """Of each kind the first request, and its reason."""

    def add(self, values: Values, answer: Answer) -> None:
        self.asked += 1
        if answer.error is not None:
            kind = alike(answer.error[:_REASON])
            if len(self.failures) >= _COUNTED and kind not in self.failures:
                kind = "other reasons"
            self.failures[kind] += 1
            self.failed.setdefault(kind, (values, answer.error))
            return
        if answer.text in self.answers or len(self.answers) < _COUNTED:
            self.answers[answer.text] += 1
        else:
            self.others += 1
        kept = self.different if self.answers[answer.text] <= _EACH else self.alike
        if len(kept) < _SAMPLES:
            kept.append((values, answer))

    @property
    def shown(self) -> list[tuple[Values, Answer]]:
        """Some requests with valid answers: with different ones first, if there are such."""
        return [*self.different, *self.alike][:_SAMPLES]


def samples(
    batches: Iterable[tuple[Task, Sequence[Values], Sequence[Answer]]],
) -> list[TaskSample]:
    """One sample a task, in the order in which tasks were first answered."""
    found: dict[Task, TaskSample] = {}
    for task, asked, answers in batches:
        sample = found.setdefault(task, TaskSample(task))
        for values, answer in zip(asked, answers, strict=True):
            sample.add(values, answer)
    return list(found.values())
