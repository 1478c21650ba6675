"""The answers of a view: those that it keeps, and those of its session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blendfusion.models.protocol.abilities import abilities_of
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.memory import AnswerStore, MemoryStore, StoreStats
from blendfusion.models.stores.recording import StoreWrapper
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.services.views.drift import Draw
from blendfusion.types import Answer, Task

UNLIMITED_MB = 1 << 30
"""A view drops no answer of its own."""


class KeptAnswers(StoreWrapper):
    """The answers of ``model`` in ``kept``, and behind them those of the session's store, which
    ``kept`` gets as far as they are used. ``draw`` notes what was kept; ``before``: the questions
    of the query that the view had before."""

    def __init__(
        self, model: CachedModel, kept: AnswerStore, draw: Draw, before: Sequence[Task] = ()
    ) -> None:
        super().__init__(model.store)
        self.model, self.kept, self.draw, self.before = model, kept, draw, before

    def get_many(
        self, fingerprint: str, task: Task, values: Sequence[Values]
    ) -> dict[Values, Answer]:
        found = self.kept.get_many(fingerprint, task, values)
        self.draw.note(self.model, task, found)
        rest = [value for value in values if value not in found]
        more = self.of.get_many(fingerprint, task, rest) if rest else {}
        if more:
            self.draw.note_new(self.model, task, more)
            self.kept.store_many(fingerprint, task, more)
        return found | more

    def in_order(self, fingerprint: str, task: Task, values: list[Values]) -> list[Values]:
        """The values of a changed question: those whose answers before were least certain first,
        so that a budget is spent where answers change most."""
        sure: dict[Values, float] = {}
        for old in self.before:
            if old != task and _is_changed(old, task):
                found = self.kept.get_many(fingerprint, old, values)
                sure |= {
                    v: 1.0 if a.probability is None else a.probability for v, a in found.items()
                }
        return sorted(values, key=lambda value: sure.get(value, 0.0)) if sure else values

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        self.draw.note_new(self.model, task, answers)
        self.kept.store_many(fingerprint, task, answers)
        super().store_many(fingerprint, task, answers)

    def earlier(self, fingerprint: str, task: Task, most: int) -> list[str]:
        return self.kept.earlier(fingerprint, task, most) or self.of.earlier(
            fingerprint, task, most
        )

    def clear(self, fingerprint: str | None = None) -> None:
        self.kept.clear(fingerprint)
        super().clear(fingerprint)

    def stats(self) -> StoreStats:
        return self.kept.stats()


def _is_changed(old: Task, new: Task) -> bool:
    """Whether ``new`` may be ``old`` with other labels, or in other words."""
    same = old.question == new.question or old.constraint == new.constraint
    return same and old.constraint.kind == new.constraint.kind


def store_of(
    model: CachedModel, kept: AnswerStore, draw: Draw, before: Sequence[Task] = ()
) -> AnswerStore:
    """The store from which a model answers during a refresh. ``kept`` gets no answers that mean
    nothing to another process."""
    lasts = abilities_of(model.inner).fingerprint_lasts
    return KeptAnswers(model, kept if lasts else MemoryStore(), draw, before)
