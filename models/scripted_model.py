"""A Python function as model: deterministic, for tests and for users' own code."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from blendfusion.errors import ModelFailed
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.prompts.canonical import Value, canonical
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.interrupts import check_interrupt
from blendfusion.models.protocol.model import OnAnswer, StreamingAnswers, Values
from blendfusion.models.scores.distribution import distribution_of
from blendfusion.models.scores.logprobs import likeliest
from blendfusion.types import Answer, ModelInfo, Request, Task, Usage

Script: TypeAlias = "Callable[[Request], Value | None]"


class ScriptedModel(StreamingAnswers):
    """Calls ``fn`` for every request; ``calls`` keeps the requests, in order.

    ``fn`` gets a ``Request`` and returns a bool, int, float, Decimal, str, date, datetime, a list
    of those, or None for "no answer". A mapping is the odds of a closed set's options, of which the
    likeliest is the answer: ``{True: 0.9, False: 0.1}``. What lies outside the request's constraint
    becomes a failed answer. ``ModelFailed`` raised by ``fn`` fails that value alone; any other
    exception propagates.

    Two scripted models never share cached answers, even around the same function, and a file of
    stored answers gets none of theirs: what a function does is not known by its name.
    ``fingerprint`` vouches for it: models with equal ones answer alike, in every process and
    version of your code.

    Of images ``fn`` gets names, for which ``bf.image_bytes`` has the bytes, or URLs.

    >>> model = ScriptedModel(lambda call: len(call.values[0]))
    >>> model.answer(Task("llm_int", "How long?"), [("four",)])[0].text
    '4'
    """

    def __init__(
        self,
        fn: Script,
        *,
        name: str = "scripted",
        window: int = 4096,
        batch_size: int = 64,
        fingerprint: str | None = None,
    ) -> None:
        self._fn = fn
        self._batch_size = batch_size
        self._lasts = fingerprint is not None
        own = uuid.uuid4().hex if fingerprint is None else f"named:{fingerprint}"
        self._info = ModelInfo(name, f"scripted:{own}", window)
        self.calls: list[Request] = []

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            sees_images=True, hears_audio=True, hears_speech=True, fingerprint_lasts=self._lasts
        )

    @property
    def batch_size(self) -> int:
        return self._batch_size

    def count_tokens(self, text: str) -> int:
        return -(-len(text) // 4)

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """As ``StreamingModel.answer_each``; the whole batch counts as one call of the first
        answer. After an exception of the function, its earlier answers are kept."""
        question_tokens = self.count_tokens(task.question)
        answers = []
        for number, row in enumerate(values):
            check_interrupt()
            request = Request(task, row)
            # Noted before the function runs, so that a raising one is seen too. The append of one
            # item is atomic: threads may share a model.
            self.calls.append(request)
            tokens = question_tokens
            for value in row:
                if value:
                    tokens += self.count_tokens(value)
            answers.append(self._ask(request, tokens, calls=0 if number else 1))
            on_answer(number, answers[-1])
        return answers

    def _ask(self, request: Request, tokens: int, calls: int) -> Answer:
        try:
            value = self._fn(request)
        except ModelFailed as error:
            return self._failure(f"the function says {str(error)!r}", tokens, calls)
        if value is None:
            return self._failure("no answer", tokens, calls)
        constraint, logprob = request.constraint, None
        if isinstance(value, Mapping) and constraint.distribution:
            text = distribution_of(value, constraint) or str(value)
        elif isinstance(value, Mapping) and constraint.kind in ("boolean", "choice"):
            text, logprob = likeliest(value, constraint) or (str(value), None)
        else:
            text = canonical(value, constraint)
        if not holds(constraint, text):
            return self._failure(
                f"answered {text[:80]!r}, which is not {constraint}", tokens, calls
            )
        return Answer(
            text, logprob=logprob, usage=_usage_of(calls, tokens, self.count_tokens(text))
        )

    def _failure(self, reason: str, tokens: int, calls: int) -> Answer:
        return Answer.failed(reason, Usage(1, 0, 1, calls, tokens, tokens, 0))

    def close(self) -> None:
        """Nothing to free."""


@lru_cache(maxsize=4096)
def _usage_of(calls: int, prompt_tokens: int, completion_tokens: int) -> Usage:
    """One value's usage; equal ones are one object, as a million values have few lengths."""
    return Usage(1, 0, 0, calls, prompt_tokens, prompt_tokens, completion_tokens)
