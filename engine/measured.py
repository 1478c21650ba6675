"""What a session's model has spent so far: the base of estimates of what it will spend."""

from __future__ import annotations

import threading

from blendfusion.types import Task, Usage


class Measured:
    """Usage by task, over all runs of a session. Safe to use from threads."""

    def __init__(self) -> None:
        self._by_task: dict[Task, Usage] = {}
        self._total = Usage()
        self._lock = threading.Lock()

    def add(self, task: Task, spent: Usage) -> None:
        """Note what one batch spent."""
        with self._lock:
            self._by_task[task] = self._by_task.get(task, Usage()) + spent
            self._total += spent

    def of(self, task: Task) -> Usage | None:
        """What the values of ``task`` cost so far; None if the model has not seen any."""
        usage = self._by_task.get(task)
        return usage if usage is not None and usage.values else None

    @property
    def seconds_per_token(self) -> float | None:
        """Over all tokens that were evaluated or generated; None before the first."""
        tokens = self._total.evaluated_tokens + self._total.completion_tokens
        return self._total.seconds / tokens if tokens else None
