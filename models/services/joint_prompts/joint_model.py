"""Several requests to a model in one prompt, where tokens are paid."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from blendfusion.models.protocol.model import Model, OnAnswer, StreamingAnswers, Values, answer_each
from blendfusion.types import Answer, ModelInfo, Task, Usage


class JointModel(StreamingAnswers, ABC):
    """Asks ``inner`` several things in one prompt. They may influence one another, so the answers
    are stored apart from those of ``inner``."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner

    @property
    def outages(self) -> tuple[str, ...]:
        """Messages about servers that are left out."""
        return tuple(getattr(self.inner, "outages", ()))

    @property
    @abstractmethod
    def info(self) -> ModelInfo: ...

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def close(self) -> None:
        self.inner.close()

    @abstractmethod
    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """Like ``answer``; answers are reported as they come."""

    def _info(self, kind: str, variant: str, **settings: str) -> ModelInfo:
        """The facts about ``inner``, with a fingerprint of this ``variant``."""
        info = self.inner.info
        digest = hashlib.sha256(f"{info.fingerprint}\n{variant}".encode()).hexdigest()
        fingerprint = f"{info.fingerprint.partition(':')[0]}-{kind}:{digest[:32]}"
        return replace(info, fingerprint=fingerprint, settings={**info.settings, **settings})


class JointAnswers:
    """The answers to one batch of values, by joint prompts as far as they give some."""

    def __init__(self, values: Sequence[Values], on_answer: OnAnswer) -> None:
        self._values, self._on_answer = values, on_answer
        self._answers: dict[int, Answer] = {}
        self.spent: dict[int, Usage] = {}
        """The usage of joint prompts, by the value whose answer has it."""

    def settle(self, place: int, answer: Answer) -> None:
        """Report the answer to the value at ``place``."""
        usage = answer.usage + self.spent.pop(place, Usage())
        self._answers[place] = answer.with_usage(replace(usage, values=1))
        self._on_answer(place, self._answers[place])

    def complete(self, inner: Model, task: Task) -> list[Answer]:
        """All answers, in order: values without one yet are asked alone."""
        left = [place for place in range(len(self._values)) if place not in self._answers]
        if left:
            answer_each(
                inner,
                task,
                [self._values[place] for place in left],
                lambda number, answer: self.settle(left[number], answer),
            )
        return [self._answers[place] for place in range(len(self._values))]
