"""Asks a few kept answers again, and tells whether the model is another one behind the same name.

A model that is unsure gives another answer to the same question now and then, so one that differs
proves nothing. A value whose answer differs is asked a second time. As long as the model is the
same, the kept answer and the two new ones come in any order with equal probability: where two of
them agree, the kept one and the first new one are the odd one equally often, however unsure the
model is. A bet against that multiplies its stake by 2 q where the kept answer is the odd one, and
by 2 (1 - q) where the new one is. The stake of a fair bet reaches 100 with a probability of at most
1/100, however long it goes on (Ville's inequality)."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from blendfusion.models.protocol.model import Values, call_method
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Answer, Task

if TYPE_CHECKING:
    from blendfusion.udfs.ask.ledger import Ledger

FALSE_ALARMS = 0.01
"""The most probable share of views whose model never changes, and that are ever warned of."""
_Q = 0.92
_KEPT_ODD, _NEW_ODD = math.log(2 * _Q), math.log(2 - 2 * _Q)


@dataclass(frozen=True, slots=True)
class Drift:
    """The answers of a view that were asked again since its model was last told to be the same."""

    again: int = 0
    """Values that were asked again."""
    kept_odd: int = 0
    """Values of which two new answers agree, and the kept one differs."""
    new_odd: int = 0
    """Values of which the first new answer alone differs."""

    @property
    def is_alarm(self) -> bool:
        """Whether the stake of the bet, which began with 1, has reached 100."""
        stake = self.kept_odd * _KEPT_ODD + self.new_odd * _NEW_ODD
        return stake >= -math.log(FALSE_ALARMS)

    def with_answers(self, kept: Answer, first: Answer, second: Answer | None) -> Drift:
        """A copy that counts one more value. ``second``: the answer of the second question; None
        where the first new answer equals the kept one."""
        odd_kept = second is not None and first.text == second.text
        odd_new = second is not None and kept.text == second.text
        return Drift(self.again + 1, self.kept_odd + odd_kept, self.new_odd + odd_new)


@dataclass(slots=True)
class Draw:
    """A random sample of at most ``most`` kept answers of a run, each with equal probability."""

    most: int
    random: random.Random
    _seen: set[tuple[str, Task, Values]] = field(default_factory=set)
    _heap: list[tuple[float, int, CachedModel, Task, Values, Answer]] = field(default_factory=list)

    def note(self, model: CachedModel, task: Task, found: Mapping[Values, Answer]) -> None:
        """Note kept answers of a model, each once."""
        if not self.most:
            return
        for values, answer in found.items():
            key = (model.fingerprint, task, values)
            if key not in self._seen:
                self._seen.add(key)
                entry = (-self.random.random(), len(self._seen), model, task, values, answer)
                heapq.heappush(self._heap, entry)
                if len(self._heap) > self.most:
                    heapq.heappop(self._heap)

    def note_new(self, model: CachedModel, task: Task, found: Mapping[Values, Answer]) -> None:
        """Note answers that were not kept before: none of them is drawn."""

    def ask_again(self, ledger: Ledger, drift: Drift) -> Drift:
        """``drift`` with the drawn answers, asked again of their models within a budget; ends at an
        alarm."""
        groups: dict[tuple[int, Task], list[tuple[Values, Answer]]] = {}
        models = {id(entry[2]): entry[2] for entry in self._heap}
        for _, _, model, task, values, answer in sorted(self._heap, key=lambda entry: entry[:2]):
            groups.setdefault((id(model), task), []).append((values, answer))
        for (number, task), some in groups.items():
            drift = _add_to(ledger, models[number], task, some, drift)
        return drift


def _add_to(
    ledger: Ledger,
    model: CachedModel,
    task: Task,
    some: Sequence[tuple[Values, Answer]],
    drift: Drift,
) -> Drift:
    ledger.open(model)
    kept = dict(some)
    first = _ask(ledger, model, task, list(kept))
    other = [v for v, answer in first.items() if answer.text != kept[v].text]
    second = _ask(ledger, model, task, other)
    for values, answer in first.items():
        again = second.get(values)
        if values not in other or again is not None:
            drift = drift.with_answers(kept[values], answer, again)
            if drift.is_alarm:
                return drift
    return drift


def _ask(
    ledger: Ledger, model: CachedModel, task: Task, values: Sequence[Values]
) -> dict[Values, Answer]:
    """The valid answers of the model itself, whatever is stored."""
    answers: list[Answer] = []
    while len(answers) < len(values):
        size = ledger.admit(task, len(values) - len(answers), model)
        begun = perf_counter()
        given = call_method(
            model.inner.answer, task, list(values[len(answers) : len(answers) + size])
        )
        ledger.settle(task, size, given, perf_counter() - begun)
        answers += given
    return {v: answer for v, answer in zip(values, answers, strict=True) if answer.error is None}
