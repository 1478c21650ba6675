"""Results with their evidence: the value, and the span of the text that states it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Constraint
from blendfusion.udfs.ask.decode import part_value
from blendfusion.udfs.declare.call import (
    CONFIDENCE,
    END,
    EVIDENCE,
    ITEM,
    REASON,
    START,
    VALUE,
    Call,
)
from blendfusion.udfs.text.evidence import COPIED, Part, ground_among

_AS_TEXT = ("text", "regex", "choice", "date", "timestamp")
_NOT_IN_TEXT = "not in the text"


def with_evidence(
    call: Call, answers: Sequence[Answer], values: Sequence[Values]
) -> list[dict[str, object] | None]:
    """One result an answer, in order; None for an answer that failed.

    A number, a date or a text that the value does not state is NULL, with a reason. The evidence is
    the characters from ``start`` up to ``end`` of the value; where the value is a list of texts, of
    that which is ``item`` in it, from 1.
    """
    return [
        _result(call, answer, [text or "" for text in texts])
        for answer, texts in zip(answers, values, strict=True)
    ]


def in_list(result: object, places: Sequence[int]) -> object:
    """A result whose ``item`` is the place in a list, from 1, of which only the texts at ``places``
    were asked about."""
    if not isinstance(result, dict) or result[ITEM] is None:
        return result
    return {**result, ITEM: places[result[ITEM] - 1]}


def _result(call: Call, answer: Answer, texts: Sequence[str]) -> dict[str, object] | None:
    if answer.text is None:
        return None
    constraint = call.task.constraint
    confidence = answer.probability
    if constraint.kind != "struct":
        part = answer.text if constraint.kind in _AS_TEXT else json.loads(answer.text)
        return _evidence(constraint, part, texts, confidence, call.answer_type)
    parts = json.loads(answer.text)
    return {
        f.name: _evidence(
            f.constraint, parts[f.name], texts, confidence, call.answer_type.field(f.name).type
        )
        for f in constraint.fields
    }


def _evidence(
    constraint: Constraint,
    part: Part,
    texts: Sequence[str],
    confidence: float | None,
    to: pa.DataType,
) -> dict[str, object]:
    found, place = ground_among(constraint, part, texts)
    reason = None
    if found.missing:
        reason = f"{_NOT_IN_TEXT}: {', '.join(found.missing)}"
    elif found.value is None:
        reason = _NOT_IN_TEXT
    elif found.span is None and constraint.kind not in COPIED:
        reason = "a judgement of the whole text"
    start, end = found.span or (None, None)
    return {
        VALUE: None if found.value is None else part_value(found.value, to),
        CONFIDENCE: confidence,
        EVIDENCE: None if place is None else texts[place][start:end],
        ITEM: None if place is None else place + 1,
        START: start,
        END: end,
        REASON: reason,
    }
