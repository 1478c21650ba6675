"""A wrapper around a foreign model that rejects answers outside of the constraint."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from blendfusion.errors import BlendFusionError, ModelError, ModelFailed
from blendfusion.models.constraints.constraint import holds
from blendfusion.models.protocol.abilities import Abilities, abilities_of
from blendfusion.models.protocol.allowance import OutOfBudgetError
from blendfusion.models.protocol.gate import bounded_usage, is_logprob
from blendfusion.models.protocol.model import (
    Model,
    OnAnswer,
    StreamingAnswers,
    Values,
    answer_each,
    call_method,
    tells,
)
from blendfusion.redaction import in_quotes
from blendfusion.types import Answer, ModelInfo, Task

T = TypeVar("T")

_SHOWN = 300
"""Characters of what a model says that an error repeats."""


class CheckedModel(StreamingAnswers):
    """Answers as ``inner`` does, where its answers keep the protocol; else that value's failure
    says why.

    Checked are the number of answers, their type, and that the text of each is canonical and inside
    the task's constraint. An exception of ``inner`` that is not BlendFusion's becomes ModelFailed;
    the answers that it gave one by one before are kept.
    """

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self._name = type(inner).__name__

    @property
    def abilities(self) -> Abilities:
        return abilities_of(self.inner)

    @property
    def info(self) -> ModelInfo:
        info = self._typed_member("info", ModelInfo, lambda: self.inner.info)
        self._name = info.name
        return info

    @property
    def batch_size(self) -> int:
        size = self._typed_member("batch_size", int, lambda: self.inner.batch_size)
        if size < 1:
            raise ModelFailed(f"{self._name}: batch_size is {size}, and must be at least 1")
        return size

    def count_tokens(self, text: str) -> int:
        return self._typed_member("count_tokens", int, lambda: self.inner.count_tokens(text))

    def _typed_member(self, what: str, kind: type[T], read: Callable[[], object]) -> T:
        """A member of the protocol, of its type. Raises ModelFailed."""
        with self._failing():
            found = read()
        if not isinstance(found, kind) or isinstance(found, bool):
            raise ModelFailed(
                f"{self._name}: {what} is a {type(found).__name__}, and must be {kind.__name__}"
            )
        return found

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except ModelError as error:
            if not error.foreign:
                error.foreign = True
                error.reword(_quote(error.message), error.hint and error.hint.map(_quote))
            raise
        except (BlendFusionError, OutOfBudgetError):
            raise
        except Exception as error:
            raise ModelFailed(
                f"the model {self._name} raised {type(error).__name__}: {_quote(error)}",
                foreign=True,
            ) from (error if _has_words(error) else None)

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """As ``StreamingModel.answer_each``: one answer a tuple, in order, whatever ``inner``
        returns."""
        heard: dict[int, Answer] = {}

        def hear(place: int, answer: Answer) -> None:
            if 0 <= place < len(values) and place not in heard:
                heard[place] = self._check(task, answer)
                on_answer(place, heard[place])

        given = self._ask_inner(task, values, hear)
        if not isinstance(given, list | tuple) or len(given) != len(values):
            number = len(given) if isinstance(given, list | tuple) else "no list of"
            problem = f"the model gave {number} answers to {len(values)} requests"
            given = [Answer.failed(problem)] * len(values)
        for place, answer in enumerate(given):
            hear(place, answer)
        return [heard[place] for place in range(len(values))]

    def _ask_inner(self, task: Task, values: Sequence[Values], hear: OnAnswer) -> Any:
        """The answers of ``inner``. Only a model that reports answers one by one calls ``hear``."""
        telling = tells(self.inner)
        with self._failing():
            if telling:
                return answer_each(self.inner, task, values, hear)
            return call_method(self.inner.answer, task, values)

    def _check(self, task: Task, answer: object) -> Answer:
        if not isinstance(answer, Answer):
            return Answer.failed(f"the model gave a {type(answer).__name__}, which is no Answer")
        answer = replace(answer, usage=bounded_usage(answer.usage))
        if answer.error is not None:
            reason = f"the model says {_quote(answer.error)}"
            return Answer.failed(reason, answer.usage, too_long=bool(answer.too_long))
        text: object = answer.text
        if isinstance(text, str) and holds(task.constraint, text):
            possible = is_logprob(answer.logprob) and answer.logprob != -math.inf
            return answer if possible else replace(answer, logprob=None)
        shown = in_quotes(text) if isinstance(text, str) else f"a {type(text).__name__}"
        return Answer.failed(f"answered {shown}, which is not {task.constraint}", answer.usage)

    def close(self) -> None:
        with self._failing():
            self.inner.close()


def _has_words(error: Exception) -> bool:
    try:
        str(error)
    except Exception:
        return False
    return True


def _quote(words: object) -> str:
    """The model's words in quotes; their class where they cannot be written."""
    try:
        return in_quotes(str(words), _SHOWN)
    except Exception:
        return f"a {type(words).__name__}"
