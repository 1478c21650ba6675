"""A bounded sample of the requests of a run, spread evenly over it, with all that failed or were
cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.observer import Part

_Batch: TypeAlias = "tuple[int, Task, list[Values], list[Answer]]"


class Sample:
    """Keeps all requests up to ``most``; then every second one, every fourth, and so on."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._step = 1
        self._seen = self._kept = self._next = 0
        self._batches: list[_Batch] = []
        """With the number of their first request: the others follow ``_step`` by ``_step``."""
        self._failed: list[tuple[Task, list[Values], list[Answer]]] = []
        """The others among them that failed or were cut off."""

    @property
    def left_out(self) -> int:
        """How many requests are not in the sample."""
        return self._seen - self._kept

    @property
    def batches(self) -> list[tuple[Task, list[Values], list[Answer]]]:
        """The task, the values, and as many answers of each batch, in order; then the failures that
        the sample lacks."""
        return [*((t, values, answers) for _, t, values, answers in self._batches), *self._failed]

    def add(self, task: Task, values: Sequence[Values], answers: Sequence[Answer]) -> None:
        """Note a batch."""
        self._note((self._next, task, list(values), list(answers)), len(values), 1)

    def add_part(self, task: Task, part: Part) -> None:
        """Note a batch of which only some requests are known: one of ``part.every``."""
        spacing = part.every or 1
        first = -(-self._next // spacing) * spacing
        batch = first, task, list(part.listed), list(part.listed.values())
        self._note(batch, part.number, spacing)
        if part.failed:
            self._failed.append((task, list(part.failed), list(part.failed.values())))

    @property
    def every(self) -> int:
        """The sampling step: every n-th request is kept from now on. 0: none."""
        return self._step if self.most else 0

    def _note(self, batch: _Batch, number: int, spacing: int) -> None:
        self._seen += number
        self._next = max(batch[0] + len(batch[2]) * spacing, self._seen)
        self._add(batch, self.every, spacing)
        while self._kept > self.most:
            self._thin()

    def _thin(self) -> None:
        batches, self._batches, self._kept = self._batches, [], 0
        before, self._step = self._step, 2 * self._step
        for batch in batches:
            self._add(batch, self._step, before)

    def _add(self, batch: _Batch, step: int, spacing: int) -> None:
        """Keep the requests of a batch whose numbers are multiples of ``step`` (0: none), and what
        failed of the others. Their numbers are ``spacing`` apart."""
        number, task, values, answers = batch
        if step == spacing:
            self._batches.append(batch)
            self._kept += len(values)
            return
        start, by = (-number % step // spacing, step // spacing) if step else (len(values), 1)
        kept = values[start::by]
        if kept:
            self._batches.append((number + start * spacing, task, kept, answers[start::by]))
            self._kept += len(kept)
        failed = [
            i
            for i, answer in enumerate(answers)
            if (answer.error is not None or answer.is_cut) and (i < start or (i - start) % by)
        ]
        if failed:
            self._failed.append((task, [values[i] for i in failed], [answers[i] for i in failed]))
