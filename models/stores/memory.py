"""The protocol of an answer store, and a store in memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol, runtime_checkable

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Task, Usage

FROM_CACHE = Usage(cached=1)
"""The usage of an answer that is found: a hit, no tokens."""


@dataclass(frozen=True, slots=True)
class StoreStats:
    """The size of a store. ``bytes`` and ``limit_bytes`` are 0 where it does not count them."""

    entries: int
    models: int
    """How many models the answers are of."""
    bytes: int = 0
    limit_bytes: int = 0
    oldest: int | None = None
    """When the entry was used that was not used for longest: seconds since 1970, UTC."""
    newest: int | None = None


@runtime_checkable
class AnswerStore(Protocol):
    """Answers by model fingerprint, task and values. Safe to use from threads.

    A store of another kind (a server that a team shares, say) is a class with these methods: pass
    an object of it as ``connect(cache=…)``. It never raises for an answer that it cannot store or
    find: an answer that is not there is asked again."""

    @property
    def outlives_process(self) -> bool:
        """Whether other processes may see the answers; then only those of models come here whose
        fingerprint says the same in every process."""
        ...

    def get_many(
        self, fingerprint: str, task: Task, values: Sequence[Values]
    ) -> dict[Values, Answer]:
        """The stored answers among these, in any order. Their usage is not stored."""
        ...

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        """Keep these, at once: a process that is killed afterwards loses none of them."""
        ...

    def earlier(self, fingerprint: str, task: Task, most: int) -> list[str]:
        """The texts of at most ``most`` stored answers to ``task``, without NULL."""
        ...

    def clear(self, fingerprint: str | None = None) -> None:
        """Forget the answers of one model, or all."""
        ...

    def stats(self) -> StoreStats:
        """The number and size of the stored answers."""
        ...

    def close(self) -> None:
        """Let go of files and connections. May be called twice; the store may be used again."""
        ...


class MemoryStore:
    """Answers in the memory of this process, for as long as the store lives."""

    outlives_process = False

    def __init__(self) -> None:
        self._shelves: dict[str, dict[Task, dict[Values, Answer]]] = {}
        self._lock = threading.Lock()

    def get_many(
        self, fingerprint: str, task: Task, values: Sequence[Values]
    ) -> dict[Values, Answer]:
        shelf = self._shelves.get(fingerprint, {}).get(task)
        return {v: shelf[v] for v in values if v in shelf} if shelf else {}

    def store_many(self, fingerprint: str, task: Task, answers: Mapping[Values, Answer]) -> None:
        hits = {v: answer.with_usage(FROM_CACHE) for v, answer in answers.items()}
        with self._lock:
            self._shelves.setdefault(fingerprint, {}).setdefault(task, {}).update(hits)

    def earlier(self, fingerprint: str, task: Task, most: int) -> list[str]:
        with self._lock:
            some = islice(self._shelves.get(fingerprint, {}).get(task, {}).values(), most)
            return [a.text for a in some if a.text is not None]

    def clear(self, fingerprint: str | None = None) -> None:
        with self._lock:
            if fingerprint is None:
                self._shelves.clear()
            else:
                self._shelves.pop(fingerprint, None)

    def stats(self) -> StoreStats:
        with self._lock:
            shelves = chain.from_iterable(tasks.values() for tasks in self._shelves.values())
            return StoreStats(entries=sum(map(len, shelves)), models=len(self._shelves))

    def close(self) -> None:
        """Nothing to let go of."""
