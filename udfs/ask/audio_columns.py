"""Converts columns of audio to values of requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.models.protocol.audio import name_of, problem_of
from blendfusion.models.protocol.images import Bytes
from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.declare.call import Call

Column: TypeAlias = "pa.Array | pa.ChunkedArray"

_SIZE = re.compile(r", ([\d,]+) bytes, ")


def named_audio(columns: Sequence[Column]) -> tuple[list[pa.Array], dict[str, Bytes]]:
    """The columns as texts, a name a recording, and the bytes by name. NULL and no bytes are NULL;
    the bytes stay where they are in the columns."""
    held: dict[str, Bytes] = {}

    def name(value: pa.Scalar) -> str | None:
        data: Bytes = memoryview(value.as_buffer()) if value.is_valid else b""
        if not len(data):
            return None
        named = name_of(data)
        held.setdefault(named, data)
        return named

    texts = [pa.array([name(value) for value in column], pa.string()) for column in columns]
    return texts, held


def transcribe(call: Call, values: Sequence[Values], dispatcher: Dispatcher) -> list[Answer]:
    """One answer a recording, in order; a value that is no recording is a failed answer.

    Raises QueryError for a model that transcribes nothing.
    """
    problems = {value: found for value in values if (found := _problem(value))}
    fit = [value for value in values if value not in problems]
    if fit and not dispatcher.model_of(call).abilities.hears_speech:
        raise QueryError(
            f"{call.ingredient.name}: {dispatcher.model_of(call).name} transcribes no speech",
            hint="Leave out model, for the packaged Moonshine: pip install 'blendfusion[speech]'.",
        )
    answers = dict(zip(fit, dispatcher.ask(call.task, fit, call), strict=True)) if fit else {}
    return [answers[v] if v in answers else Answer.failed(problems[v]) for v in values]


def _problem(values: Values) -> str:
    for value in values:
        size = _SIZE.search(value or "")
        found = problem_of(value or "", int(size[1].replace(",", "")) if size else 0)
        if found:
            return found
    return ""
