"""Translates BigQuery's AI.… functions, after its SQL reference of 2025."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from blendfusion.dialects.shared.catalog import Known
from blendfusion.dialects.warehouses.calls import (
    Call,
    Function,
    Written,
    asks,
    classifies,
    listed,
    translated,
    two,
)
from blendfusion.sql.source_map import Translation
from blendfusion.udfs.declare.arguments import quoted

_OF_MODELS = frozenset(
    {
        "connection_id",
        "endpoint",
        "model_params",
        "request_type",
        "max_error_ratio",
        "optimization_mode",
    }
)
_TYPES = {
    "STRING": "TEXT",
    "INT64": "INT",
    "INTEGER": "INT",
    "FLOAT64": "FLOAT",
    "BOOL": "BOOLEAN",
    "NUMERIC": "FLOAT",
}


def _wrapped(before: str, inside: Written, behind: str) -> Written:
    yield before
    yield from inside
    yield behind


def _classify(call: Call) -> Written:
    labels = call.texts("categories")
    question, values = call.prompt("input")
    if call.has("output_mode") and call.text("output_mode").lower() == "multi":
        return asks("llm_map", call, "input", f"options => {listed(labels)}", "returns => 'list+'")
    if question == "{}" and len(values) == 1:
        return classifies(call, "input", labels)
    return asks("llm_map", call, "input", f"options => {listed(labels)}")


def _typed(ours: str) -> Callable[[Call], Written]:
    return lambda call: asks(ours, call)


def _generated(ours: str) -> Callable[[Call], Written]:
    """A STRUCT of the result and a status, as the functions AI.GENERATE… give it."""
    return lambda call: _wrapped("named_struct('result', ", asks(ours, call), ", 'status', '')")


def _generate(call: Call) -> Written:
    return _structured(call) if call.has("output_schema") else _generated("llm_text")(call)


def _result(call: Call) -> Written:
    if call.has("output_schema"):
        raise call.refused("output_schema", "with an output schema there is no field 'result'")
    return asks("llm_text", call)


def _structured(call: Call) -> Written:
    schema = call.text("output_schema")
    for theirs, ours in _TYPES.items():
        schema = re.sub(rf"\b{theirs}\b", ours, schema, flags=re.IGNORECASE)
    schema = re.sub(r"\bARRAY\s*<", "LIST<", schema, flags=re.IGNORECASE)
    question, values = call.prompt()
    if len(values) != 1:
        raise call.refused(
            "output_schema",
            "an output schema needs one value in the prompt",
            "Write llm_extract(value, 'name TEXT, …', question => '…').",
        )
    yield "llm_extract("
    yield from values[0]
    yield f", {quoted(schema)}, question => {quoted(question)})"


def _field(call: Call, name: str) -> Written:
    if not call.has("output_schema"):
        raise call.refused(None, f"there is no field '{name}'", "It has result.")
    return _wrapped("", _structured(call), f"[{quoted(name)}]")


def _agg(call: Call) -> Written:
    yield f"llm_qa({quoted(call.text('instruction'))}, "
    yield from call.value("input")
    yield ")"


def _function(name: str, ours: str) -> Function:
    return Function(
        f"AI.{name}",
        ("prompt",),
        1,
        _generated(ours),
        {("result",): _typed(ours), ("status",): lambda call: ["''"]},
        _OF_MODELS,
    )


FUNCTIONS = (
    Function("AI.IF", ("prompt",), 1, _typed("llm_filter"), ignored=_OF_MODELS),
    Function("AI.SCORE", ("prompt",), 1, _typed("llm_score"), ignored=_OF_MODELS),
    Function(
        "AI.CLASSIFY", ("input", "categories", "output_mode"), 2, _classify, ignored=_OF_MODELS
    ),
    Function(
        "AI.GENERATE",
        ("prompt", "output_schema"),
        1,
        _generate,
        {("result",): _result, ("status",): lambda call: ["''"]},
        _OF_MODELS,
        open_fields=_field,
    ),
    _function("GENERATE_BOOL", "llm_bool"),
    _function("GENERATE_INT", "llm_int"),
    _function("GENERATE_DOUBLE", "llm_float"),
    Function("AI.AGG", ("input", "instruction"), 2, _agg, ignored=_OF_MODELS),
    Function(
        "AI.SIMILARITY",
        ("content1", "content2"),
        2,
        partial(two, "llm_similarity", first="content1", second="content2"),
        ignored=_OF_MODELS,
    ),
)


def translate(text: str, known: Known) -> Translation:
    """``text`` in our SQL. Raises QueryError, with the span in ``text``, for a form that has no
    translation."""
    return translated(text, FUNCTIONS, "bigquery")
