"""Bounded samples and statistics of all answers of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from blendfusion.models.protocol.model import Values
from blendfusion.run.reports.answer_warnings import alike
from blendfusion.types import Answer, Task

_EACH = 2
"""Maximum samples of one answer while others are available."""
_SAMPLES = 8
_REASON = 500
"""Characters of a reason that determine its kind."""
_COUNTED = 10_000
"""Maximum distinct answers to count; prose answers are mostly distinct."""


@dataclass(slots=True)
class TaskSample:
    """The answers to one task."""

    task: Task
    requests: int = 0
    """Requests, including cached and failed ones."""
    answers: Counter[str | None] = field(default_factory=Counter)
    """The valid answers. Only the first 10,000 distinct ones are counted; ``others`` are the rest.
    """
    others: int = 0
    different: list[tuple[Values, Answer]] = field(default_factory=list)
    alike: list[tuple[Values, Answer]] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    """Kinds of reasons: see ``answer_warnings.alike``."""
    failed: dict[str, tuple[Values, str]] = field(default_factory=dict)
    """The first request of each kind, with its reason."""

    def add(self, values: Values, answer: Answer) -> None:
        self.requests += 1
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
    def shown_samples(self) -> list[tuple[Values, Answer]]:
        """Some requests with valid answers, with distinct answers first."""
        return [*self.different, *self.alike][:_SAMPLES]


def samples(
    batches: Iterable[tuple[Task, Sequence[Values], Sequence[Answer]]],
) -> list[TaskSample]:
    """One sample per task, in the order of their first answers."""
    found: dict[Task, TaskSample] = {}
    for task, values, answers in batches:
        sample = found.setdefault(task, TaskSample(task))
        for one, answer in zip(values, answers, strict=True):
            sample.add(one, answer)
    return list(found.values())
