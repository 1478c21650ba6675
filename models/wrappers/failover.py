"""A failover chain: values that fail in one model go to the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from blendfusion.errors import ModelError, ModelFailed, ModelNotFound, OptionError, connect_with
from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.protocol import event_fields as f
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.events import log
from blendfusion.models.protocol.model import Model, OnAnswer, Values
from blendfusion.models.stores.memory import AnswerStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.models.wrappers.cascade import CascadeModel
from blendfusion.types import Answer, ModelInfo, Task, Usage

T = TypeVar("T")
Models: TypeAlias = "str | Model | Sequence[str | Model] | None"
"""A model or its name, or several in the order in which they are asked."""

_NONE_LEFT = "no model is left. "


def each_of(spec: Models) -> Sequence[str | Model | None]:
    """The models that ``spec`` names, one by one; None is the default one. Raises ModelNotFound for
    an empty list."""
    if not isinstance(spec, list | tuple):
        return [spec]  # type: ignore[list-item]
    if not spec:
        raise ModelNotFound(
            "the list of models is empty", hint="Write model=['smollm2', 'openai:…'], or one model."
        )
    return spec


def check_levels(models: int, targets: Targets | None) -> None:
    """Raise OptionError where something is promised of one model."""
    if targets is not None and models < 2:
        raise OptionError(
            f"{targets}: that is promised of a small model before a large one",
            hint="Name two or more, the smallest first: "
            f"{connect_with('smollm2', 'openai:…', accuracy=0.95)}.",
        )


def together(models: Sequence[CachedModel], targets: Targets | None) -> CachedModel:
    """Models as one, each with its stored answers: a cascade where something is promised, else each
    for what those before it fail at."""
    *before, model = models
    if targets is not None and before:
        return CascadeModel(model.inner, model.store, *before)
    for one in reversed(before):
        model = FallbackModel(one.inner, one.store, model)
    return model


class FallbackModel(CachedModel):
    """A model with its stored answers, and ``following`` for the values that it fails on.

    Every value goes to the first model. ``following`` gets those without a valid answer and, where
    the first fails as a whole (ModelNotFound, ModelFailed), all that are left; it may be a
    FallbackModel in turn. An answer says by ``model`` and ``spent`` who gave it and what each model
    spent, and is stored as one of that model. Stored answers of ``following`` count only for values
    that the first failed at: who answers must not depend on who was asked before.

    A model that failed as a whole is left out until ``check``, which begins a run, is called again.
    """

    def __init__(self, inner: Model, store: AnswerStore, following: CachedModel) -> None:
        super().__init__(inner, store)
        self.following = following
        self._out: ModelError | None = None
        self._following_out: ModelError | None = None
        self._following_checked = False
        self._first = CachedModel(inner, self.store)

    @property
    def levels(self) -> tuple[CachedModel, ...]:
        return (self._first, *self.following.levels)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.following.names)

    @property
    def parts(self) -> tuple[CachedModel, ...]:
        return (self, self._first, *self.following.parts)

    @property
    def weights(self) -> dict[str, str]:
        return super().weights | self.following.weights

    @property
    def outages(self) -> tuple[str, ...]:
        """Messages about models that were left out since the last ``check``."""
        first = (f"{self.name}: {self._out.message}",) if self._out else ()
        rest = self.following.outages
        if self._following_out and not rest:  # a single model, which tells nothing of itself
            rest = (f"{self.following.name}: {self._following_out.message}",)
        return first + rest

    @property
    def info(self) -> ModelInfo:
        """The identity of the first model that is not left out."""
        return self._either(lambda: super(FallbackModel, self).info, lambda: self.following.info)

    @property
    def batch_size(self) -> int:
        return self._either(
            lambda: super(FallbackModel, self).batch_size, lambda: self.following.batch_size
        )

    @property
    def abilities(self) -> Abilities:
        """The abilities of the first model; while it is left out, the speed of the next one."""
        own, following = super().abilities, self.following.abilities
        used = own if self._out is None else following
        return replace(
            own,
            at_once=used.at_once,
            call_per_value=used.call_per_value,
            sees_images=own.sees_images or following.sees_images,
            hears_audio=own.hears_audio or following.hears_audio,
            hears_speech=own.hears_speech or following.hears_speech,
            unanswerable=lambda task: own.unanswerable(task) and following.unanswerable(task),
        )

    def count_tokens(self, text: str) -> int:
        return self._either(
            lambda: super(FallbackModel, self).count_tokens(text),
            lambda: self.following.count_tokens(text),
        )

    def check(self) -> None:
        """Begin a run: every model is tried again. Raises ModelFailed if none can be reached."""
        self._out = self._following_out = None
        self._following_checked = False
        self._either(super().check, lambda: None)

    def known_answers(self, task: Task, values: Sequence[Values]) -> dict[Values, Answer]:
        found: dict[Values, Answer] = {}
        try:
            found = super().known_answers(task, values)
        except ModelError as problem:  # it could not even say who it is
            self._leave(problem)
        if self._out is not None and self._following_out is None:
            others = self.following.known_answers(task, [v for v in values if v not in found])
            found |= {v: self._by_following(answer) for v, answer in others.items()}
        return {v: found[v] for v in values if v in found}

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        answers: dict[int, Answer] = {}
        failed: dict[int, Answer] = {}

        def settle(place: int, answer: Answer) -> None:
            answers[place] = answer
            on_answer(place, answer)

        def hear(place: int, answer: Answer) -> None:
            if answer.error is None:
                settle(place, answer)
            else:
                failed[place] = answer

        own = super().abilities
        if task.images and not own.sees_images:
            failed = dict.fromkeys(range(len(values)), Answer.failed("reads text only, no images"))
        elif reason := own.unanswerable(task):
            failed = dict.fromkeys(range(len(values)), Answer.failed(reason))
        elif self._out is None:
            try:
                super().answer_each(task, values, hear)
            except ModelError as problem:
                self._leave(problem)
        left = [place for place in range(len(values)) if place not in answers]
        if left:
            self._ask_following(task, values, left, failed, settle)
        return [answers[place] for place in range(len(values))]

    def _ask_following(
        self,
        task: Task,
        values: Sequence[Values],
        places: Sequence[int],
        failed: dict[int, Answer],
        settle: OnAnswer,
    ) -> None:
        """Ask the next model about these places, of which the first ``failed`` at some."""
        waiting = dict.fromkeys(places)

        def hear(i: int, answer: Answer) -> None:
            place = places[i]
            del waiting[place]
            answer = self._by_following(answer)
            before = failed.get(place)
            settle(place, answer if before is None else self._after(before, answer))

        if self._following_out is None:
            try:
                self._check_following()
                self.following.answer_each(task, [values[place] for place in places], hear)
            except ModelError as problem:
                self._following_out = problem
                self._tell(self.following.name, problem)
        if not waiting:
            return
        gone = self._following_out
        assert gone is not None
        if self._out is not None:
            raise self._none_left(gone)
        # The first model works: what it failed at, and nobody else can answer, has failed.
        for place in waiting:
            unanswered = self._by_following(Answer.failed(gone.message))
            settle(place, self._after(failed[place], unanswered))

    def _by_following(self, answer: Answer) -> Answer:
        if answer.spent:
            return answer
        return replace(answer, spent=((self.following.name, answer.usage),))

    def _after(self, before: Answer, answer: Answer) -> Answer:
        """The answer to a value that the first model failed at."""
        spent = ((self.name, before.usage), *answer.spent)
        total = Usage.total(usage for _, usage in spent)
        usage = replace(
            total,
            values=min(total.values, 1),
            cached=0 if total.values else total.cached,
            failed=int(answer.error is not None),
        )
        if answer.error is None:
            return replace(answer, usage=usage, spent=spent)
        reason = answer.error
        if len(answer.spent) == 1:  # of several, each is named in it already
            reason = f"{answer.model}: {reason}"
        return replace(
            answer,
            usage=usage,
            spent=spent,
            error=f"{self.name}: {before.error}; {reason}",
            too_long=before.too_long or answer.too_long,
        )

    def forget(self) -> None:
        super().forget()
        self.following.forget()

    def close(self) -> None:
        super().close()
        self.following.close()

    def _either(self, own: Callable[[], T], other: Callable[[], T]) -> T:
        """The result of the first model, or of the next where the first is left out."""
        if self._out is None:
            try:
                return own()
            except ModelError as problem:
                self._leave(problem)
        try:
            self._check_following()
            return other()
        except ModelError as problem:
            raise self._none_left(problem) from problem

    def _check_following(self) -> None:
        if not self._following_checked:
            self.following.check()
            self._following_checked = True

    def _leave(self, problem: ModelError) -> None:
        self._out = problem
        self._tell(self.name, problem)

    def _tell(self, model: str, problem: ModelError) -> None:
        outage = {f.REQUEST_MODEL: model, f.ERROR: type(problem).__name__}
        log("model", logging.WARNING, "a model failed as a whole and is left out", {**outage})

    def _none_left(self, problem: ModelError) -> ModelFailed:
        assert self._out is not None
        rest = problem.message.removeprefix(_NONE_LEFT)
        if rest == problem.message:
            rest = f"{self.following.name}: {rest}"
        return ModelFailed(
            f"{_NONE_LEFT}{self.name}: {self._out.message}; {rest}",
            hint=self._out.hint or problem.hint,
            foreign=self._out.foreign or problem.foreign,
        )
