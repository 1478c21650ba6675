"""Translates BigQuery's AI.… functions, after its SQL reference of 2025."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from blendfusion.services.dialects.functions.bigquery import BIGQUERY as SYSTEM
from blendfusion.services.dialects.warehouses.calls import (
    Call,
    Function,
    Warehouse,
    Written,
    asks,
    classifies_prompt,
    extract_fields,
    fill,
    function,
    list_labels,
    wrap,
)
from blendfusion.udfs.declare.arguments import sql_string
from blendfusion.udfs.functions.llm_score import MOST_POINTS

_OF_MODELS = frozenset(
    "connection_id endpoint model_params request_type max_error_ratio optimization_mode".split()
)


_SCALES = (
    r"\b(?:from|between|of)\s+(-?\d+)\s*(?:to|and|-|–|through)\s*(-?\d+)\b",
    r"\b(-?\d+)\s*(?:-|–|to)\s*(\d+)\s+(?:scale|points?)\b",
    r"\(\s*(-?\d+)\s*(?:-|–|to)\s*(\d+)\s*\)",
)
"""How prompts name a scale: "from 1 to 5", "a scale of 1-10", "1-5 scale", "(0-10)"."""


def _score(call: Call) -> Written:
    question, _ = call.prompt("prompt")
    found = {
        (int(match[1]), int(match[2]))
        for scale in _SCALES
        for match in re.finditer(scale, question, re.IGNORECASE)
    }
    if not found:
        return asks("llm_score", call)
    if len(found) > 1:
        raise call.refusal("prompt", "the prompt names several scales", _SCALE)
    low, high = min(found)
    if not low < high < low + MOST_POINTS:
        raise call.refusal("prompt", f"a scale from {low} to {high} is not possible", _SCALE)
    return asks("llm_score", call, "prompt", f"low => {low}", f"high => {high}")


_SCALE = f"A scale has 2 to {MOST_POINTS} whole numbers: from 1 to 5."


def _classify(call: Call) -> Written:
    labels = call.texts("categories")
    if call.has("output_mode") and call.text("output_mode").lower() == "multi":
        options = f"options => {list_labels(labels)}"
        return asks("llm_map", call, "input", options, "returns => 'list+'")
    return classifies_prompt(call, "input", labels)


def _generate_struct(ours: str) -> Callable[[Call], Written]:
    """A STRUCT of the result and a status, as the functions AI.GENERATE… give it."""
    return lambda call: wrap("named_struct('result', ", asks(ours, call), ", 'status', '')")


def _status(call: Call) -> Written:
    return ["''"]


def _generate(call: Call) -> Written:
    return _structure(call) if call.has("output_schema") else _generate_struct("llm_text")(call)


def _result(call: Call) -> Written:
    if call.has("output_schema"):
        raise call.refusal("output_schema", "with an output schema there is no field 'result'")
    return asks("llm_text", call)


def _structure(call: Call) -> Written:
    return extract_fields(call, call.schema("output_schema"))


def _aggregate(call: Call) -> Written:
    yield from wrap("llm_qa(", call.value("instruction"), ", ")
    yield from wrap("", call.join_prompt("input"), ")")


def _field(call: Call, name: str) -> Written:
    if not call.has("output_schema"):
        raise call.refusal(None, f"there is no field '{name}'", "It has result.")
    return wrap("", _structure(call), f"[{sql_string(name)}]")


def _typed_function(kind: str, ours: str) -> Function:
    return function(
        f"AI.GENERATE_{kind}(prompt)",
        _generate_struct(ours),
        f"{ours}(question, value, …)",
        fields={("result",): partial(asks, ours), ("status",): _status},
        ignored=_OF_MODELS,
    )


FUNCTIONS = (
    function("AI.IF(prompt)", "llm_filter", ignored=_OF_MODELS),
    function(
        "AI.SCORE(prompt)",
        _score,
        "llm_score(question, value, …, low => 1, high => 5), the scale that the prompt names",
        ignored=_OF_MODELS,
    ),
    function(
        "AI.EMBED(content)",
        lambda call: wrap(
            "named_struct('result', llm_embed(", call.value("content"), "), 'status', '')"
        ),
        "llm_embed(content)",
        fields={("result",): partial(fill, "llm_embed({content})"), ("status",): _status},
        ignored=_OF_MODELS | {"task_type", "title"},
    ),
    function(
        "AI.CLASSIFY(input, categories, [output_mode])",
        _classify,
        "llm_classify(input, categories), or llm_map(…, options => categories)",
        ignored=_OF_MODELS,
    ),
    function(
        "AI.GENERATE(prompt, [output_schema])",
        _generate,
        "llm_text(question, value, …), or llm_extract(value, output_schema)",
        fields={("result",): _result, ("status",): _status},
        ignored=_OF_MODELS,
        open_fields=_field,
    ),
    _typed_function("BOOL", "llm_bool"),
    _typed_function("INT", "llm_int"),
    _typed_function("DOUBLE", "llm_float"),
    function(
        "AI.AGG(input, instruction)", _aggregate, "llm_qa(instruction, input)", ignored=_OF_MODELS
    ),
    function(
        "AI.SIMILARITY(content1, content2)",
        "llm_similarity({content1}, {content2})",
        ignored=_OF_MODELS,
    ),
)
_VECTORS = "Write AI.EMBED(text).result in SELECT, or session.index(table) to search."
_BY_ROW = "Write AI.GENERATE(prompt).result in SELECT."
REFUSED = {
    "AI.GENERATE_EMBEDDING": _VECTORS,
    "AI.SEARCH": "Write FROM llm_search('documents', 'words', k => 5).",
    "AI.FORECAST": "BlendFusion makes no forecasts.",
    "AI.GENERATE_TEXT": _BY_ROW,
    "AI.GENERATE_TABLE": "Write AI.GENERATE(prompt, output_schema => '…') in SELECT.",
    "ML.GENERATE_TEXT": _BY_ROW,
}
WAREHOUSE = Warehouse("BigQuery", "bigquery", FUNCTIONS, REFUSED, SYSTEM)
