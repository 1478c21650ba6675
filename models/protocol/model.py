"""The protocol of a model: one method that answers a batch of requests of one task, or more."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import ParamSpec, Protocol, TypeGuard, TypeVar, runtime_checkable

from blendfusion.types import Answer, ModelInfo, Task

P = ParamSpec("P")
T = TypeVar("T")

Values = tuple[str | None, ...]
"""The values of one request: see ``blendfusion.types.Request``."""

OnAnswer = Callable[[int, Answer], None]
"""Receives the position of a request in its batch, and its answer."""


@runtime_checkable
class Model(Protocol):
    """Answers requests. A back end and every policy around one have this shape."""

    @property
    def info(self) -> ModelInfo:
        """The identity of the model. Cheap after the first use; the first may load the model.

        What a model can do besides is declared in an attribute ``abilities``: see ``Abilities``.
        """
        ...

    @property
    def batch_size(self) -> int:
        """How many requests one ``answer`` should get for the model to be driven well.

        More are allowed; fewer waste throughput. The caller may interrupt between batches.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of ``text`` alone, without template or special tokens; an upper estimate will
        do."""
        ...

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        """Answer ``task`` for each tuple of values.

        Returns one answer a tuple, in order. The text of an answer is canonical (see
        ``Constraint``) and inside the task's constraint, else it is an error for that tuple alone.
        ``Constraint.decides`` is () unless the model's ``abilities`` say ``stops_early``.
        Raises ``ModelNotFound`` if the model cannot be had, ``ModelFailed`` if it broke as a
        whole; never for a single value.

        It may be a coroutine function: each batch then runs in an event loop of its own, in a
        thread of its own, and is cancelled where the query is interrupted."""
        ...

    def close(self) -> None:
        """Free what the model holds. May be called twice; the model may be used again after."""
        ...


class StreamingModel(Protocol):
    """A model that delivers its answers one by one, so that an error loses none of them.

    A wrapper around such a model must be one too, or it delivers them at the end.
    """

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """As ``Model.answer``; ``on_answer`` also receives each answer as soon as it is final, in
        any order.

        ``on_answer`` is quick. It is called on any thread, but never twice at a time, never twice
        for one request, and not after this method has returned or raised. Whatever is raised
        (KeyboardInterrupt too), delivered answers count: they are stored and not asked again."""
        ...


class StreamingAnswers:
    """A base of streaming models, which need ``answer_each`` alone."""

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        """As ``answer_each``, for callers who need only the list of answers."""
        return self.answer_each(task, values, ignore_answer)

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """See ``StreamingModel.answer_each``."""
        raise NotImplementedError


def answer_each(
    model: Model, task: Task, values: Sequence[Values], on_answer: OnAnswer
) -> list[Answer]:
    """The answers of ``model``; ``on_answer`` receives them one by one, or all at the end if the
    model cannot deliver them earlier."""
    if tells(model):
        return call_method(model.answer_each, task, values, on_answer)
    answers = call_method(model.answer, task, values)
    for place, answer in enumerate(answers):
        on_answer(place, answer)
    return answers


def call_method(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a method of a model. A coroutine function runs in an event loop of its own, in
    a thread that ends with it."""
    if inspect.iscoroutinefunction(method):
        from blendfusion.models.protocol.run_aside import run_confined

        result: T = run_confined(lambda: method(*args, **kwargs))
        return result
    return method(*args, **kwargs)


def tells(model: Model) -> TypeGuard[StreamingModel]:
    """Whether a model offers ``answer_each``. One that overrides ``answer`` alone does not: its
    inherited ``answer_each`` would bypass it."""
    for names in (getattr(model, "__dict__", {}), *map(vars, type(model).__mro__)):
        if "answer_each" in names or "answer" in names:
            return "answer_each" in names
    return False


def ignore_answer(place: int, answer: Answer) -> None:
    """An ``OnAnswer`` that does nothing, for callers who need only the list of answers."""
