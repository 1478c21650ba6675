"""A model around a model that asks every distinct request once."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from itertools import chain, islice

from blendfusion.models.model import Model, Values
from blendfusion.models.store import AnswerStore
from blendfusion.types import Answer, ModelInfo, Task, Usage

_FROM_CACHE = Usage(cached=1)


class CachedModel:
    """Answers from ``store`` what it holds; asks ``inner`` for the rest, equal requests once.

    The key is all that can change an answer: the model's fingerprint, the task, the values. Errors
    are not stored. An answer from the store carries the usage of a cache hit, no tokens.

    An answer that ended where a query's comparisons were decided belongs to these comparisons; one
    that was given in full to every query. A model that does not end answers early is not told of
    comparisons, so that its answers are of the second kind.
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

    @property
    def at_once(self) -> int:
        """How many requests take the model no longer than one: 1 if it does not say."""
        return max(1, getattr(self.inner, "at_once", 1))

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def check(self) -> None:
        """Let the model say, once and before any value is sent, if it cannot be reached."""
        if not self._checked:
            check = getattr(self.inner, "check", None)
            if check is not None:
                check()
            self._checked = True

    def known(self, task: Task, values: Sequence[Values]) -> dict[Values, Answer]:
        """The stored answers among these, in order, as cache hits; the others must be asked."""
        whole, begun = self._shelf(task.in_full), self._shelf(self._told(task))
        found = ((v, whole.get(v) or begun.get(v)) for v in values)
        return {v: a.with_usage(_FROM_CACHE) for v, a in found if a is not None}

    def earlier(self, task: Task, most: int) -> list[str]:
        """The texts of stored answers to ``task``, at most so many; NULL ones are left out."""
        shelves = self._shelf(task.in_full), self._shelf(self._told(task))
        some = islice(chain(*(shelf.values() for shelf in shelves)), most)
        return [a.text for a in some if a.text is not None]

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        known = self.known(task, values)
        missing = list(dict.fromkeys(v for v in values if v not in known))
        task = self._told(task)
        new = dict(zip(missing, self.inner.answer(task, missing), strict=True)) if missing else {}
        kept = {v: a for v, a in new.items() if a.error is None}
        whole, begun = self._shelf(task.in_full), self._shelf(task)
        whole.update({v: a for v, a in kept.items() if a.finish != "decided"})
        begun.update({v: a for v, a in kept.items() if a.finish == "decided"})
        unpaid: dict[Values, Answer | None] = {**new}  # the first of equal requests pays
        return [
            unpaid.pop(v, None) or known.get(v) or new[v].with_usage(_FROM_CACHE) for v in values
        ]

    def _told(self, task: Task) -> Task:
        """What the model gets to know of a task."""
        return task if getattr(self.inner, "stops_early", False) else task.in_full

    def _shelf(self, task: Task) -> MutableMapping[Values, Answer]:
        own = getattr(self.inner, "fingerprint", None)  # at hand before a model is loaded
        return self.store.shelf(own or self.inner.info.fingerprint, task)

    def close(self) -> None:
        self.inner.close()
