"""What a session's model has spent so far: the base of estimates of what it will spend."""

from __future__ import annotations

import threading
from typing import TypeAlias

from blendfusion.types import Task, Usage

Question: TypeAlias = "tuple[Task, tuple[str, ...]]"
"""What is asked, and the models that are named for it; (): those of the session."""


class Measured:
    """Usage by question, over all runs of a session. Safe to use from threads."""

    def __init__(self) -> None:
        self._by_question: dict[Question, Usage] = {}
        self._by_names: dict[tuple[str, ...], Usage] = {}
        self._lock = threading.Lock()

    def add(self, question: Question, spent: Usage) -> None:
        """Note what one batch spent."""
        with self._lock:
            self._by_question[question] = self._by_question.get(question, Usage()) + spent
            names = question[1]
            self._by_names[names] = self._by_names.get(names, Usage()) + spent

    def of(self, question: Question) -> Usage | None:
        """What the values of a question cost so far; None if it was not asked of any."""
        usage = self._by_question.get(question)
        return usage if usage is not None and usage.values else None

    def seconds_per_token(self, names: tuple[str, ...]) -> float | None:
        """Of these models, over all tokens that were evaluated or generated; None before the first."""
        total = self._by_names.get(names, Usage())
        tokens = total.evaluated_tokens + total.completion_tokens
        return total.seconds / tokens if tokens else None
