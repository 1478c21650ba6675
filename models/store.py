"""Where answers live."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from typing import Protocol

from blendfusion.models.model import Values
from blendfusion.types import Answer, Task


class AnswerStore(Protocol):
    """Answers by model fingerprint, task and values."""

    def shelf(self, fingerprint: str, task: Task) -> MutableMapping[Values, Answer]:
        """The answers of one model to one task; changes are kept. Safe to use from threads."""
        ...


class MemoryStore:
    """Answers in the memory of this process, for as long as the store lives."""

    def __init__(self) -> None:
        self._shelves: dict[tuple[str, Task], dict[Values, Answer]] = {}
        self._lock = threading.Lock()

    def shelf(self, fingerprint: str, task: Task) -> MutableMapping[Values, Answer]:
        with self._lock:
            return self._shelves.setdefault((fingerprint, task), {})

    def clear(self) -> None:
        with self._lock:
            self._shelves.clear()

    def __len__(self) -> int:
        return sum(len(shelf) for shelf in self._shelves.values())
