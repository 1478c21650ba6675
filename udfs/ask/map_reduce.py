"""Folds contexts longer than a model's window in several passes, without silent cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Answer, Constraint, Task
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.declare.call import Call

_ROW_OVERHEAD = 4
"""Tokens around a row: its bullet and line break, with some to spare."""
_PROMPT_OVERHEAD = 320
"""Tokens of instruction, template and examples, with some to spare."""
_LARGEST_ANSWER_SHARE = 4
"""An answer to a part may take a fourth of the window, so that each pass shortens."""


_LEAST_ROOM = 16
"""Tokens of values in one question; where even fewer do not fit, nothing will."""

Context: TypeAlias = "tuple[str, ...]"
"""The rows of a group, as they are asked about."""


def answer_contexts(
    call: Call, contexts: Sequence[Context], dispatcher: Dispatcher
) -> list[Answer]:
    """One answer a context, in order; contexts too long for the window are read in parts.

    Each pass asks for notes on every part of every long context in one batch; notes are the rows of
    the next pass. A row longer than the window is split. Where the model finds too long what should
    fit, the context is read in parts half as long. An answer is failed where notes failed, or did
    not get shorter. Raises AnswerError where the call says so."""
    if not contexts:
        return []
    if dispatcher.certain(call.task) is not None:
        return dispatcher.ask(call.task, contexts, call)
    waiting = {i: _Reading(context, _room(call, dispatcher)) for i, context in enumerate(contexts)}
    done: dict[int, Answer] = {}
    while waiting:
        _take_notes(call, list(waiting.values()), dispatcher)
        pending = list(dict.fromkeys(r.rows for r in waiting.values() if r.failed is None))
        answers = dict(zip(pending, dispatcher.ask(call.task, pending, call), strict=True))
        for i, reading in list(waiting.items()):
            answer = reading.failed or answers[reading.rows]
            if not (answer.too_long and reading.shrink()):
                done[i] = answer
                del waiting[i]
    return [done[i] for i in range(len(contexts))]


@dataclass(slots=True)
class _Reading:
    """A context on its way to a question that fits."""

    rows: Context
    room: int
    """Tokens of the rows of one question."""
    failed: Answer | None = None

    def shrink(self) -> bool:
        """Half the room, for another try; False if there is too little of it."""
        self.room //= 2
        self.failed = None
        return self.room >= _LEAST_ROOM

    def note(self, notes: Sequence[Answer]) -> None:
        """Go on with the notes on the parts, in the place of the rows."""
        failed = next((n for n in notes if n.error is not None), None)
        if failed is not None:
            reason = f"notes on a part of it failed: {failed.error}"
            self.failed = Answer.failed(reason, too_long=failed.too_long)
            return
        rows = tuple(n.text for n in notes if n.text)
        if not rows:
            self.failed = Answer.failed("notes on its parts say nothing")
        elif sum(map(len, rows)) >= sum(map(len, self.rows)):
            self.failed = Answer.failed("notes on its parts are no shorter than the parts")
        else:
            self.rows = rows


def _take_notes(call: Call, readings: Sequence[_Reading], dispatcher: Dispatcher) -> None:
    """Replace the rows of those that are too long by notes, as often as it takes."""
    task, model = _notes_task(call), dispatcher.model_of(call)
    while True:
        parts = [
            (reading, _parts(reading.rows, model, reading.room))
            for reading in readings
            if reading.failed is None and _size(reading.rows, model, reading.room) > reading.room
        ]
        if not parts:
            return
        pending = list(dict.fromkeys(part for _, own in parts for part in own))
        notes = dict(zip(pending, dispatcher.ask(task, pending, call), strict=True))
        for reading, own in parts:
            reading.note([notes[part] for part in own])


def _notes_task(call: Call) -> Task:
    question = call.task.question or "the main points"
    return replace(
        call.task,
        ingredient="llm_summarize",
        form="summary",
        question=f"Note in one or two sentences what bears on this: {question}",
        constraint=Constraint(),
        examples=(),
        examples_query=None,
        consistency=1,
    )


def _room(call: Call, dispatcher: Dispatcher) -> int:
    window = dispatcher.info_of(call).window
    used = _PROMPT_OVERHEAD + dispatcher.model_of(call).count_tokens(call.task.question)
    room = window - window // _LARGEST_ANSWER_SHARE - used
    return max(room, window // 4)


def _size(context: Context, model: CachedModel, room: int) -> int:
    upper = sum(len(row.encode()) + _ROW_OVERHEAD for row in context)
    if upper <= room:
        return upper
    return sum(model.count_tokens(row) + _ROW_OVERHEAD for row in context)


def _parts(context: Context, model: CachedModel, room: int) -> list[Context]:
    parts: list[Context] = []
    current: list[str] = []
    used = 0
    pieces = [piece for row in context for piece in _pieces(row, model, room)]
    for row in pieces:
        tokens = model.count_tokens(row) + _ROW_OVERHEAD
        if current and used + tokens > room:
            parts.append(tuple(current))
            current, used = [], 0
        current.append(row)
        used += tokens
    parts.append(tuple(current))
    return parts


def _pieces(row: str, model: CachedModel, room: int) -> list[str]:
    tokens = model.count_tokens(row) + _ROW_OVERHEAD
    if tokens <= room or len(row) < 2:
        return [row]
    middle = len(row) // 2
    cut = row.rfind(" ", 0, middle) + 1 or middle
    return _pieces(row[:cut], model, room) + _pieces(row[cut:], model, room)
