"""Where a cell of a result comes from, and the labels that a person gives in its place."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from typing import Any

import pyarrow as pa

from blendfusion.files.row_writers import text_of
from blendfusion.redaction import Redaction

_MOST = 5
"""The answers that are shown of one cell."""
CORRECTIONS = "corrections"
"""The table of labels: one row for each answer that was corrected."""
_COLUMNS = ("question", "text", "answer", "label")


def answers_behind(
    calls: pa.Table, row: dict[str, Any], value: object, redaction: Redaction
) -> list[dict[str, Any]]:
    """The answers of a run about the values of ``row``: first those that are the ``value`` of the
    cell, or are part of it. A value that the row does not show cannot be found."""
    texts = {text for held in row.values() for text in _texts(held)}
    own = {text.lower() for text in _texts(value)}
    found = [
        one
        for one in calls.to_pylist()
        if one["values"] and all(text is None or text in texts for text in one["values"])
    ]
    found.sort(key=lambda one: str(one["answer"]).lower() not in own)
    return [_answer(one, redaction) for one in found[:_MOST]]


def _texts(value: object) -> Iterator[str]:
    """The texts of a value and of its fields."""
    if isinstance(value, dict):
        for held in value.values():
            yield from _texts(held)
    elif value is not None:
        yield value if isinstance(value, str) else text_of(value)


def _answer(one: dict[str, Any], redaction: Redaction) -> dict[str, Any]:
    return {
        "call": one["ingredient"],
        "question": one["question"],
        "values": [None if v is None else redaction.page(v) for v in one["values"]],
        "answer": None if one["answer"] is None else redaction.page(one["answer"]),
        "error": None if one["error"] is None else redaction.page(one["error"]),
        "probability": None if one["logprob"] is None else exp(one["logprob"]),
        "model": one["model"],
        "cached": one["cached"],
    }


def corrections_table(given: list[dict[str, str]]) -> pa.Table:
    """The labels as a table: the question, the text that was asked about, the answer, the label."""
    return pa.table(
        {name: pa.array([one[name] for one in given], pa.string()) for name in _COLUMNS}
    )
