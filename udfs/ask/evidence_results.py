"""Results with their evidence: the value, and the span of the text that states it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from blendfusion.models.protocol.images import has_bytes
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
from blendfusion.udfs.text.evidence import COPIED, Part, facts_of, ground_among, span_of

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


def stated_answer(call: Call, answer: Answer, values: Values) -> Answer:
    """The answer without the numbers and dates that its one text does not state. Fields are NULL,
    items are dropped; an answer that is nothing else has failed, with that as its error. An image
    states nothing in words, so the answer about it is left as it is."""
    text = values[0] or ""
    if answer.text is None or has_bytes(text):
        return answer
    constraint = call.task.constraint
    if constraint.kind in _AS_TEXT:
        if span_of(constraint, answer.text, text) is not None:
            return answer
        return replace(answer, text=None, error=f"{_NOT_IN_TEXT}: {answer.text}")
    part = json.loads(answer.text)
    kept = facts_of(constraint, part, text)
    return answer if kept == part else replace(answer, text=json.dumps(kept, ensure_ascii=False))


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
