"""Measured usage of a session's models, as the basis of estimates."""

from __future__ import annotations

import threading
from typing import TypeAlias

from blendfusion.types import Task, Usage

Question: TypeAlias = "tuple[Task, tuple[str, ...]]"
"""A task, and the models that the call names; () for those of the session."""


class MeasuredUsage:
    """Usage by question, over all runs of a session. Safe to use from threads."""

    def __init__(self) -> None:
        self._by_question: dict[Question, Usage] = {}
        self._by_names: dict[tuple[str, ...], Usage] = {}
        self._lock = threading.Lock()

    def add(self, question: Question, spent: Usage) -> None:
        """Record the usage of one batch."""
        with self._lock:
            self._by_question[question] = self._by_question.get(question, Usage()) + spent
            names = question[1]
            self._by_names[names] = self._by_names.get(names, Usage()) + spent

    def of(self, question: Question) -> Usage | None:
        """The total usage of a question so far; None before its first value."""
        usage = self._by_question.get(question)
        return usage if usage is not None and usage.values else None

    def seconds_per_token(self, names: tuple[str, ...]) -> float | None:
        """Seconds per evaluated or generated token of these models; None before the first."""
        total = self._by_names.get(names, Usage())
        tokens = total.evaluated_tokens + total.completion_tokens
        return total.seconds / tokens if tokens else None
