"""A model around a model that asks every distinct request once."""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.models.model import Model, Values
from blendfusion.models.store import AnswerStore
from blendfusion.types import Answer, ModelInfo, Task, Usage

_FROM_CACHE = Usage(cached=1)


class CachedModel:
    """Answers from ``store`` what it holds; asks ``inner`` for the rest, equal requests once.

    The key is all that can change an answer: the model's fingerprint, the task, the values. Errors
    are not stored. An answer from the store carries the usage of a cache hit, no tokens.
    """

    def __init__(self, inner: Model, store: AnswerStore) -> None:
        self.inner = inner
        self.store = store
        self._checked = False

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def check(self) -> None:
        """Let the model say, once and before any value is sent, if it cannot be reached."""
        if not self._checked:
            check = getattr(self.inner, "check", None)
            if check is not None:
                check()
            self._checked = True

    def known(self, task: Task, values: Sequence[Values]) -> list[Answer | None]:
        """The stored answers, one a tuple, in order; None for what must be asked."""
        shelf = self.store.shelf(self.inner.info.fingerprint, task)
        return [shelf.get(v) for v in values]

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        shelf = self.store.shelf(self.inner.info.fingerprint, task)
        found = [shelf.get(v) for v in values]
        missing = list(dict.fromkeys(v for v, a in zip(values, found, strict=True) if a is None))
        if not missing:
            return [a.with_usage(_FROM_CACHE) for a in found if a is not None]
        new = dict(zip(missing, self.inner.answer(task, missing), strict=True))
        shelf.update({v: a for v, a in new.items() if a.error is None})
        if len(missing) == len(values):
            return list(new.values())
        answers = []
        for v, stored in zip(values, found, strict=True):
            if stored is not None:
                answers.append(stored.with_usage(_FROM_CACHE))
            else:
                answers.append(new[v])
                new[v] = new[v].with_usage(_FROM_CACHE)  # the first of equal requests pays
        return answers

    def close(self) -> None:
        self.inner.close()
