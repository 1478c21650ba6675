"""A wrapper that asks a model each distinct request once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from time import monotonic

from blendfusion.errors import ModelError
from blendfusion.models.protocol.abilities import Abilities, abilities_of
from blendfusion.models.protocol.gate import fits_question, has_types
from blendfusion.models.protocol.model import Model, OnAnswer, StreamingAnswers, Values, answer_each
from blendfusion.models.stores.memory import FROM_CACHE, AnswerStore, MemoryStore
from blendfusion.models.stores.recording import Recording
from blendfusion.models.wrappers.self_consistency import answer_consistently
from blendfusion.types import Answer, ModelInfo, Task

_KEPT_SECONDS = 0.1
"""Answers of a batch are stored when so many seconds have passed: a program that is killed loses
those since then, which are fewer than the values in flight of a server that takes longer."""


class CachedModel(StreamingAnswers):
    """Answers from ``store`` where it can; asks ``inner`` for the rest, equal requests once.

    The key is all that can change an answer: the model's fingerprint, the task, the values. Errors
    are not stored. An answer from the store carries the usage of a cache hit, no tokens.

    Answers are stored while others are asked, about every second. If ``inner`` raises or is
    interrupted, the answers so far are stored first.

    An answer that ended early, where a query's comparisons were decided, is valid for these
    comparisons only; a full answer is valid for every query. A model that does not end answers
    early gets no comparisons, so that all its answers are full.

    A model that does not say ``fingerprint_lasts`` (see ``Model.info``) has its answers kept in
    memory, whatever ``store`` is.
    """

    def __init__(self, inner: Model, store: AnswerStore) -> None:
        self.inner = inner
        own = store.outlives_process and not abilities_of(inner).fingerprint_lasts
        self.store: AnswerStore = MemoryStore() if own else store
        self._checked = False

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    @property
    def name(self) -> str:
        """The name of the model. A model that declares it is not loaded for it."""
        return abilities_of(self.inner).name or self.inner.info.name

    @property
    def names(self) -> tuple[str, ...]:
        """The models that answer, in the order in which they are asked."""
        return (self.name,)

    @property
    def weights(self) -> dict[str, str]:
        """The weights in use, by the names of the models that declare them; nothing is loaded."""
        weights = abilities_of(self.inner).weights
        return {self.name: weights} if weights else {}

    @property
    def levels(self) -> tuple[CachedModel, ...]:
        """The models of a cascade, the smallest first, each to be asked apart."""
        return (self,)

    @property
    def parts(self) -> tuple[CachedModel, ...]:
        """This model and those within it, each with a store."""
        return (self,)

    @property
    def outages(self) -> tuple[str, ...]:
        """Messages about the models and servers that are no longer asked."""
        return tuple(getattr(self.inner, "outages", ()))

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size

    @property
    def abilities(self) -> Abilities:
        """The abilities of ``inner``."""
        return abilities_of(self.inner)

    def count_tokens(self, text: str) -> int:
        count = self.inner.count_tokens(text)
        if isinstance(self.store, Recording):
            self.store.note_tokens(text, count)
        return count

    def check(self) -> None:
        """Let the model say, once and before any value is sent, if it cannot be reached."""
        if not self._checked:
            abilities_of(self.inner).check()
            self._checked = True

    def known_answers(self, task: Task, values: Sequence[Values]) -> dict[Values, Answer]:
        """The stored answers among these, in order, as cache hits; the others must be asked."""
        return stored_answers(
            self.store, self.fingerprint, task.in_full, self.model_task(task), values
        )

    def in_order(self, task: Task, values: list[Values]) -> list[Values]:
        """The values in the order in which to ask them: as given, unless the store knows better."""
        order = getattr(self.store, "in_order", None)
        if order is not None:
            with suppress(ModelError):  # it cannot say who it is: others may answer for it
                return list(order(self.fingerprint, task.in_full, values))
        return values

    def question(self, task: Task) -> Hashable:
        """The key of the question: requests with equal keys and equal values have equal answers of
        this model."""
        return self.fingerprint, self.model_task(task)

    def receive(self, task: Task, answers: Mapping[Values, Answer]) -> dict[Values, Answer]:
        """Store answers of this model to ``task`` that another run asked for; as cache hits."""
        self._keep_all(self.model_task(task), answers)
        return {v: _hit(answer) for v, answer in answers.items()}

    def earlier(self, task: Task, most: int) -> list[str]:
        """The texts of stored answers to ``task``, at most so many; NULL ones are left out."""
        whole, posed = task.in_full, self.model_task(task)
        some = self.store.earlier(self.fingerprint, whole, most)
        if posed != whole and len(some) < most:
            some = some + self.store.earlier(self.fingerprint, posed, most - len(some))
        return [text for text in some if fits_question(whole.constraint, Answer(text))]

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """As ``StreamingModel.answer_each``; of equal requests the first pays, the others are cache
        hits."""
        places: dict[Values, list[int]] = {}
        for place, row in enumerate(values):
            places.setdefault(row, []).append(place)
        answers: dict[int, Answer] = {}

        def tell(row: Values, answer: Answer) -> None:
            for place in places[row]:
                answers[place] = answer
                on_answer(place, answer)
                answer = answer.with_usage(FROM_CACHE)

        known = self.known_answers(task, list(places))
        for row, answer in known.items():
            tell(row, answer)
        self._ask(self.model_task(task), [row for row in places if row not in known], tell)
        return [answers[place] for place in range(len(values))]

    def _ask(
        self, task: Task, missing: list[Values], tell: Callable[[Values, Answer], None]
    ) -> None:
        """Ask the model, and store its answers every moment, and even if it then fails."""
        if not missing:
            return
        new: dict[Values, Answer] = {}
        failed: list[Values] = []
        kept_at = monotonic()

        def keep() -> None:
            nonlocal kept_at
            self._keep_all(task, new)
            failed.extend(v for v, a in new.items() if a.error is not None)
            new.clear()
            kept_at = monotonic()

        def on_answer(place: int, answer: Answer) -> None:
            new[missing[place]] = answer
            tell(missing[place], answer)
            if monotonic() > kept_at + _KEPT_SECONDS:
                keep()

        try:
            if task.consistency > 1:
                answer_consistently(CachedModel(self.inner, self.store), task, missing, on_answer)
            else:
                answer_each(self.inner, task, missing, on_answer)
        finally:
            keep()
            if isinstance(self.store, Recording):
                self.store.note_failed(self.fingerprint, task, failed)

    def forget(self) -> None:
        """Forget every answer of this model, in a store that others share too."""
        self.store.clear(self.fingerprint)

    def _keep_all(self, task: Task, answers: Mapping[Values, Answer]) -> None:
        """Store answers to ``task`` as posed: those that ended early for its comparisons alone."""
        self._keep(task.in_full, {v: a for v, a in answers.items() if a.finish != "decided"})
        self._keep(task, {v: a for v, a in answers.items() if a.finish == "decided"})

    def _keep(self, task: Task, answers: dict[Values, Answer]) -> None:
        valid = {v: a for v, a in answers.items() if a.error is None}
        if valid:
            self.store.store_many(self.fingerprint, task, valid)

    def model_task(self, task: Task) -> Task:
        """The task as the model sees it."""
        # Answers that ended early do not say whether they agree.
        early = abilities_of(self.inner).stops_early and task.consistency == 1
        return task if early else task.in_full

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model. A model that declares it is not loaded for it."""
        return abilities_of(self.inner).fingerprint or self.inner.info.fingerprint

    def close(self) -> None:
        self.inner.close()


def stored_answers(
    store: AnswerStore, fingerprint: str, whole: Task, posed: Task, values: Sequence[Values]
) -> dict[Values, Answer]:
    """The stored answers of a model among these, in order, as cache hits. ``whole``: the task whose
    answers are valid for every query; ``posed``: the task as the model sees it.

    A stored answer that does not fit the question counts as none: others may write to a store."""
    found = _fitting(store, whole, store.get_many(fingerprint, whole, values))
    if posed != whole:
        rest = [v for v in values if v not in found]
        found |= _fitting(store, posed, store.get_many(fingerprint, posed, rest))
    return {v: _hit(found[v]) for v in values if v in found}


def _fitting(store: AnswerStore, task: Task, found: dict[Values, Answer]) -> dict[Values, Answer]:
    if isinstance(store, MemoryStore):  # nobody else writes there
        return found
    known: dict[tuple[str | None, str], bool] = {}  # of many values, few differ
    fitting: dict[Values, Answer] = {}
    for values, answer in found.items():
        if not has_types(answer):
            continue
        parts = (answer.text, answer.finish)
        if parts not in known:
            known[parts] = fits_question(task.constraint, answer)
        if known[parts]:
            fitting[values] = answer
    return fitting


def _hit(answer: Answer) -> Answer:
    return answer if answer.usage is FROM_CACHE else answer.with_usage(FROM_CACHE)
