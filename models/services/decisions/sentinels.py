"""Reads a few states again, to see whether another model answers under the same name.

A model that is unsure answers the same question otherwise now and then. So of a state whose answer
moved, the question is read twice more, and the first answer counts as odd where the three new ones
agree and it differs from all of them. An unsure model rarely does that at most of the states."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.services.decisions.independence import differ
from blendfusion.models.services.decisions.question import Question

Odds: TypeAlias = "list[float] | None"
Read: TypeAlias = Callable[[Json, Question], Awaitable[Odds]]
"""Asks one question about a state; None where it has no usable answer."""

ANSWERS = 50
"""The number of answers for which the option ``drift_checks`` gives the checks."""
_STATES = 4
_AGAIN = 3


@dataclass(slots=True)
class Sentinels:
    """The first states of a model with their answers, read again in turn."""

    checks: int
    """How many of each 50 answers are checked; 0: none."""
    _kept: list[tuple[Json, Question, list[float]]] = field(default_factory=list)
    _since: int = 0
    _turn: int = 0

    def keep(self, state: Json, question: Question, odds: Sequence[float]) -> None:
        """Keep an answer, as long as there are few."""
        known = any(state == held and question == one for held, one, _ in self._kept)
        if self.checks and len(self._kept) < _STATES and not known:
            self._kept.append((state, question, [*odds]))

    def is_due(self, answers: int) -> bool:
        """Whether a state is to be read again after so many further answers."""
        self._since += answers
        if not self.checks or len(self._kept) < _STATES:
            return False
        due = self._since * self.checks >= ANSWERS
        self._since = 0 if due else self._since
        return due

    async def has_moved(self, read: Read) -> bool:
        """Whether another model answers, by one state, and by the others where that moved. It
        forgets the answers of the earlier one then."""
        self._turn += 1
        held, question, before = self._kept[self._turn % _STATES]
        first = await read(held, question)
        if first is None or not differ(before, first):
            return False
        odd = 0
        for state, one, kept in [*self._kept]:
            found = [await read(state, one) for _ in range(_AGAIN)]
            others = [not differ(found[0], odds) for odds in found[1:]]
            odd += all(others) and all(differ(kept, odds) for odds in found)
        if odd < _STATES - 1:
            return False
        self._kept.clear()
        return True
