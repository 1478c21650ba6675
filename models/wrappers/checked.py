"""A wrapper around a foreign model that rejects answers outside of the constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blendfusion.models.constraints.constraint import holds
from blendfusion.models.protocol.model import Model, Told, Values, answer_each, unheard
from blendfusion.types import Answer, ModelInfo, Task

_SHOWN = 80
"""Characters of a wrong answer that an error repeats."""


class CheckedModel:
    """Answers as ``inner`` does, where its answers keep the protocol; else that value's failure
    says why.

    Checked are the number of answers, their type, and that the text of each is canonical and inside
    the task's constraint. What ``inner`` raises goes on, with the answers that it gave before.
    """

    def __init__(self, inner: Model) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        """What a model may say besides, such as ``sees_images``: see ``Model``."""
        return getattr(self.inner, name)

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        return self.answer_each(task, values, unheard)

    def answer_each(self, task: Task, values: Sequence[Values], told: Told) -> list[Answer]:
        """As ``Telling.answer_each``: one answer a tuple, in order, whatever ``inner`` returns."""
        heard: dict[int, Answer] = {}

        def hear(place: int, answer: Answer) -> None:
            if 0 <= place < len(values) and place not in heard:
                heard[place] = self._checked(task, answer)
                told(place, heard[place])

        given = self._given(task, values, hear)
        if not isinstance(given, list | tuple) or len(given) != len(values):
            number = len(given) if isinstance(given, list | tuple) else "no list of"
            problem = f"the model gave {number} answers to {len(values)} requests"
            given = [Answer.failed(problem)] * len(values)
        for place, answer in enumerate(given):
            hear(place, answer)
        return [heard[place] for place in range(len(values))]

    def _given(self, task: Task, values: Sequence[Values], hear: Told) -> Any:
        """What ``inner`` returns. Only a model that tells its answers one by one is heard
        meanwhile."""
        telling = getattr(self.inner, "answer_each", None)
        return (
            answer_each(self.inner, task, values, hear)
            if telling
            else self.inner.answer(task, values)
        )

    def _checked(self, task: Task, answer: object) -> Answer:
        if not isinstance(answer, Answer):
            return Answer.failed(f"the model gave a {type(answer).__name__}, which is no Answer")
        if answer.error is not None or answer.finish == "decided":
            return answer
        text: object = answer.text
        if isinstance(text, str) and holds(task.constraint, text):
            return answer
        shown = f"{text!s:.{_SHOWN}}" if isinstance(text, str) else f"a {type(text).__name__}"
        failed = Answer.failed(f"answered {shown!r}, which is not {task.constraint}")
        return failed.with_usage(answer.usage)

    def close(self) -> None:
        self.inner.close()
