"""Contexts longer than a model's window, folded in several passes: nothing is cut silently."""

from __future__ import annotations

from dataclasses import replace

from blendfusion.types import Constraint, Task
from blendfusion.udfs.asker import Asker
from blendfusion.udfs.call import Call

_ROW_OVERHEAD = 4
"""Tokens around a row: its bullet and line break, with some to spare."""
_PROMPT_OVERHEAD = 320
"""Tokens of instruction, template and examples, with some to spare."""
_LARGEST_ANSWER_SHARE = 4
"""An answer to a part may take a fourth of the window, so that each pass shortens."""


def fold(call: Call, contexts: list[tuple[str, ...]], asker: Asker) -> list[tuple[str, ...] | None]:
    """The contexts, in order, those too long for the window replaced by notes on their parts.

    Each pass asks for notes on every part of every long context in one batch; notes are the
    rows of the next pass. A row longer than the window is split. None for a context whose
    notes failed (or raises AnswerError, where the call says so).
    """
    if not contexts:
        return []
    folded: list[tuple[str, ...] | None] = list(contexts)
    room = _room(call, asker)
    task = _notes_task(call)
    while True:
        parts = {
            i: _parts(c, asker, room)
            for i, c in enumerate(folded)
            if c is not None and _size(c, asker, room) > room
        }
        if not parts:
            return folded
        asked = list(dict.fromkeys(part for i in parts for part in parts[i]))
        answers = asker.ask(task, asked)
        notes = dict(zip(asked, asker.texts(call, answers, asked), strict=True))
        for i, own in parts.items():
            rows = [notes[part] for part in own]
            shorter = sum(len(r or "") for r in rows) < sum(len(r) for r in folded[i] or ())
            failed = not shorter or any(r is None for r in rows)
            folded[i] = None if failed else tuple(r for r in rows if r)


def _notes_task(call: Call) -> Task:
    question = call.task.question or "the main points"
    return replace(
        call.task,
        ingredient="llm_summarize",
        form="summary",
        question=f"Note in one or two sentences what bears on this: {question}",
        constraint=Constraint(),
        examples=(),
    )


def _room(call: Call, asker: Asker) -> int:
    window = asker.info.window
    used = _PROMPT_OVERHEAD + asker.model.count_tokens(call.task.question)
    room = window - window // _LARGEST_ANSWER_SHARE - used
    return max(room, window // 4)


def _size(context: tuple[str, ...], asker: Asker, room: int) -> int:
    upper = sum(len(row.encode()) + _ROW_OVERHEAD for row in context)
    if upper <= room:
        return upper
    return sum(asker.model.count_tokens(row) + _ROW_OVERHEAD for row in context)


def _parts(context: tuple[str, ...], asker: Asker, room: int) -> list[tuple[str, ...]]:
    parts: list[tuple[str, ...]] = []
    current: list[str] = []
    used = 0
    pieces = [piece for row in context for piece in _pieces(row, asker, room)]
    for row in pieces:
        tokens = asker.model.count_tokens(row) + _ROW_OVERHEAD
        if current and used + tokens > room:
            parts.append(tuple(current))
            current, used = [], 0
        current.append(row)
        used += tokens
    parts.append(tuple(current))
    return parts


def _pieces(row: str, asker: Asker, room: int) -> list[str]:
    tokens = asker.model.count_tokens(row) + _ROW_OVERHEAD
    if tokens <= room or len(row) < 2:
        return [row]
    middle = len(row) // 2
    cut = row.rfind(" ", 0, middle) + 1 or middle
    return _pieces(row[:cut], asker, room) + _pieces(row[cut:], asker, room)
