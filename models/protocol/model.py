"""The protocol of a model: one method that answers a batch of requests of one task, or more."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import ParamSpec, Protocol, TypeGuard, TypeVar, runtime_checkable

from blendfusion.models.protocol.run_coroutine import run_confined
from blendfusion.types import Answer, ModelInfo, Task

P = ParamSpec("P")
T = TypeVar("T")

Values = tuple[str | None, ...]
"""The values of one request: see ``blendfusion.types.Request``."""

Told = Callable[[int, Answer], None]
"""Is told the position of a request among those asked, and its answer."""


@runtime_checkable
class Model(Protocol):
    """Answers requests. A back end and every policy around one have this shape."""

    @property
    def info(self) -> ModelInfo:
        """Who this is. Cheap after the first use; the first may load the model.

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


class Telling(Protocol):
    """What a model may offer besides: answers told one by one, so that none is lost to an error.

    A wrapper around a model offers it too, or what the inner one tells ends there.
    """

    def answer_each(self, task: Task, values: Sequence[Values], told: Told) -> list[Answer]:
        """As ``Model.answer``; besides, each answer is told as soon as it is final, in any order.

        ``told`` is quick. It is called on any thread, but never twice at a time, never twice for
        one request, and not after this method has returned or raised. Whatever is raised
        (KeyboardInterrupt too), what was told stands: it is stored, counted and not asked again."""
        ...


def answer_each(model: Model, task: Task, values: Sequence[Values], told: Told) -> list[Answer]:
    """The answers of ``model``, told one by one: at the end where it cannot tell them before."""
    if tells(model):
        return settled(model.answer_each, task, values, told)
    answers = settled(model.answer, task, values)
    for place, answer in enumerate(answers):
        told(place, answer)
    return answers


def settled(method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a method of a model returns, also of one that is a coroutine function: it runs in an
    event loop of its own, in a thread that ends with it."""
    if inspect.iscoroutinefunction(method):
        result: T = run_confined(lambda: method(*args, **kwargs))
        return result
    return method(*args, **kwargs)


def tells(model: Model) -> TypeGuard[Telling]:
    """Whether a model offers ``answer_each``. One that overrides ``answer`` alone does not: its
    inherited ``answer_each`` would bypass it."""
    for names in (getattr(model, "__dict__", {}), *map(vars, type(model).__mro__)):
        if "answer_each" in names or "answer" in names:
            return "answer_each" in names
    return False


def unheard(place: int, answer: Answer) -> None:
    """A ``Told`` for callers who only want the answers."""
