"""Answers that tests keep in stores: each value has one right answer."""

from __future__ import annotations

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.memory import AnswerStore
from blendfusion.types import Answer, Constraint, Task, Usage

TASK = Task("llm_int", "How many?", Constraint("integer"), ("x",))


def right(value: str) -> Answer:
    """The one right answer to a value."""
    return Answer(f"answer to {value}", logprob=-float(len(value)))


def many(start: int, stop: int) -> dict[Values, Answer]:
    """The right answers to so many values."""
    return {(f"value {i}",): right(f"value {i}") for i in range(start, stop)}


def found(store: AnswerStore, asked: dict[Values, Answer]) -> dict[Values, Answer]:
    """What ``store`` has of these values."""
    answers = store.get_many("m", TASK, list(asked))
    return {v: a.with_usage(Usage()) for v, a in answers.items()}
