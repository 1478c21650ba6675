"""Labels the values of a join by labels, and compares the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from blendfusion.udfs.declare.arguments import Constant, Literal, Value
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.call_registry import remember
from blendfusion.udfs.declare.labelling import Labelling
from blendfusion.udfs.functions.llm_classify import LLM_CLASSIFY


def labelling_of(call: Call) -> Labelling:
    assert call.pairing is not None
    assert call.pairing.labelling is not None
    return call.pairing.labelling


def label_call(call: Call) -> Call:
    """The call that gives a value its label: one for both sides, so that equal texts are one
    value."""
    labelling = labelling_of(call)
    names = set(call.task.columns)
    named: dict[str, Literal] = {"question": labelling.question} if labelling.question else {}
    if call.on_error is not None:
        named["on_error"] = call.on_error
    if call.models:
        named["model"] = list(call.models)
    value = Value(names.pop() if len(names) == 1 else "")
    return remember(bind(LLM_CLASSIFY, [value, Constant(list(labelling.labels))], named))


def label_chooser(call: Call) -> Call:
    """The call that finds what labelled values match, for one that judges pairs."""
    return replace(call, type=pa.list_(pa.string()))


def matching(call: Call, labels: pa.Array, others: pa.Array) -> pa.Array:
    """Whether the labels of two columns match, row by row, as the user says; BOOLEAN."""
    labelling = labelling_of(call)
    rows: Sequence[tuple[str | None, str | None]] = list(
        zip(labels.to_pylist(), others.to_pylist(), strict=True)
    )
    known = {pair: labelling.holds(*pair) for pair in set(rows)}
    return pa.array([known[pair] for pair in rows], pa.bool_())
