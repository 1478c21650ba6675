"""Asks again for answers that do not satisfy the predicate of their call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.decode import value
from blendfusion.udfs.ask.outcomes import arrow
from blendfusion.udfs.declare.answer_predicate import holds_for
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.returns import arrow_type

EARLIER = "earlier answer"
"""The name of the wrong answer among the values of the next question."""

Ask = Callable[[Task, Sequence[Values]], Sequence[Answer]]


def check_answers(
    call: Call, values: Sequence[Values], answers: Sequence[Answer], ask: Ask
) -> list[Answer]:
    """The answers, in order. An answer that does not satisfy the call's predicate after all retries
    is a failed one. A wrong answer is a value of the next question, the predicate a part of it."""
    found = dict(zip(values, answers, strict=True))
    task = _again(call)
    wrong = _wrong(call, found)
    for _ in range(call.retries):
        if not wrong:
            break
        rows = {v: (*v, _earlier(call, found[v])) for v in wrong}
        given = dict(zip(rows.values(), ask(task, list(rows.values())), strict=True))
        found.update({v: given[row] for v, row in rows.items()})
        wrong = _wrong(call, {v: found[v] for v in wrong})
    for v in wrong:
        reason = f"the answer does not satisfy the check: {call.check}"
        found[v] = replace(found[v], text=None, finish="error", error=reason)
    return [found[v] for v in values]


def _again(call: Call) -> Task:
    task = call.task
    question = task.question.strip() or "Read the text again."
    return replace(
        task,
        question=f"{question} The earlier answer is wrong, as this must hold of it: {_braces(call.check)}",
        columns=_columns(task),
        examples=(),
        examples_query=None,
        sample=(),
        sample_query=None,
        reasoning=0,
    )


def _columns(task: Task) -> tuple[str, ...]:
    if task.aggregate:
        return task.columns
    return (*(name or "text" for name in task.columns), EARLIER)


def _earlier(call: Call, answer: Answer) -> str | None:
    return f"{EARLIER}: {answer.text}" if call.task.aggregate else answer.text


def _braces(text: str) -> str:
    """A text within a question, in which braces stand for values."""
    return text.replace("{", "{{").replace("}", "}}")


def _wrong(call: Call, found: dict[Values, Answer]) -> list[Values]:
    """The values whose answers do not satisfy the predicate, without those that have no answer."""
    kind = arrow_type(call.task.constraint)
    given = {v: answer.text for v, answer in found.items() if answer.text is not None}
    if not given:
        return []
    held = holds_for(call.check, arrow([value(text, kind) for text in given.values()], kind))
    return [v for v, good in zip(given, held, strict=True) if not good]
