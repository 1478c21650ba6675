"""Answers behind a reason: the model writes first what speaks for an answer, and then answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from blendfusion.models.protocol.images import is_image
from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Constraint, Example, Task

REASON = "reason"
"""The name of the reason among the values of the second question."""

_LABEL = "My thought:"
"""Stands before the reason among the texts of a group."""
_APART = f" (A last text “{_LABEL} …” is none of the texts.)"

R = TypeVar("R", str, str | None)
Ask = Callable[[Task, Sequence[Values]], Sequence[Answer]]


def with_reasons(task: Task, values: Sequence[Values], ask: Ask) -> list[Answer]:
    """One answer a tuple of values, in order, each with its ``reason``.

    Two questions: for the reason, a free text of ``task.reasoning`` tokens at most, and for the
    answer, with the reason as a further value, so that data in it is data. The answer is inside its
    constraint whatever the reason says, also where that is cut off or missing.
    """
    given = ask(reason_task(task), values)
    reasons = [_reason_value(answer) for answer in given]
    rows = [(*row, *_further(task, why)) for row, why in zip(values, reasons, strict=True)]
    answers = ask(answer_task(task), rows)
    return [replace(a, reason=r) for a, r in zip(answers, reasons, strict=True)]


def reason_task(task: Task) -> Task:
    """The question for the reason, with the reasons of examples."""
    shots = [Example(e.values, e.reason) for e in task.examples if e.reason]
    return replace(
        task,
        question=f"{_question(task)} Do not answer yet: say in one or two short sentences what "
        "speaks for which answer.",
        constraint=Constraint("text", max_tokens=task.reasoning),
        form="question",
        examples=tuple(shots),
        consistency=1,
        reasoning=0,
    )


def answer_task(task: Task) -> Task:
    """The question itself, with the reason as a further value, or as the last of the texts of a
    group."""
    shots = [
        replace(e, values=(*e.values, *_further(task, e.reason)), reason="") for e in task.examples
    ]
    made = replace(task, examples=tuple(shots), reasoning=0)
    if not task.aggregate:
        return replace(made, columns=(*(name or "text" for name in task.columns), REASON))
    return replace(made, question=f"{task.question}{_APART}") if task.form == "question" else made


def _further(task: Task, reason: R) -> tuple[R | str, ...]:
    """The reason as a value behind others; among texts it says that it is none of them."""
    if not task.aggregate:
        return (reason,)
    return (f"{_LABEL} {reason}",) if reason else ()


def _question(task: Task) -> str:
    """The question with the answers that are possible, which its constraint would tell."""
    constraint = task.constraint.item or task.constraint
    text = task.question.strip()
    if task.form == "statement":
        text = f"Is this statement true? {text}"
    if constraint.kind == "choice":
        fits = "fit" if constraint is task.constraint.item else "fits best"
        text = f"{text or f'Which {fits}?'} ({_braces(', '.join(constraint.options))})"
    if constraint.kind == "struct":
        names = _braces(", ".join(field.name for field in constraint.fields))
        text = f"{text} What does the text say about {names}?".strip()
    return text


def _braces(text: str) -> str:
    """A text within a question, in which braces stand for values."""
    return text.replace("{", "{{").replace("}", "}}")


def _reason_value(answer: Answer) -> str | None:
    """The reason as a value; None without one. A text that names an image is none."""
    text = (answer.text or "").strip()
    return None if not text or is_image(text) else text
