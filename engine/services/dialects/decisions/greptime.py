"""Translates GreptimeDB's functions of decision models: ai_match, ai_choose and ai_score."""

from __future__ import annotations

from blendfusion.services.dialects.functions.call import System
from blendfusion.services.dialects.warehouses.calls import Call, Function, Written, function, wrap
from blendfusion.services.dialects.warehouses.decision_calls import (
    answer,
    ask,
    criteria_of,
    distribution,
    question_from,
    struct_of,
)
from blendfusion.udfs.declare.decision_questions import DecisionQuestion

SYSTEM = System(
    "GreptimeDB",
    {
        "JSON_GET_FLOAT(x, field)": "CAST(get_field({x}, {field}) AS DOUBLE)",
        "JSON_GET_STRING(x, field)": "CAST(get_field({x}, {field}) AS VARCHAR)",
    },
    strict=False,
)
"""Its other functions are those of DataFusion. The JSON values that queries read are those of
``ai_score``, which are structs here."""


def _question(call: Call, kind: str) -> DecisionQuestion:
    spec = {
        "type": kind,
        "instructions": call.text("prompt"),
        "criteria": criteria_of(call, "criteria"),
    }
    return question_from(call, "criteria", spec)


def _score(call: Call) -> Written:
    question, values = _question(call, "score"), [call.value("text")]
    shares = wrap("map_values(", distribution(question, values), ")")
    return struct_of([("score", answer(question, values)), ("probabilities", shares)])


FUNCTIONS: tuple[Function, ...] = (
    function(
        "ai_match(text, prompt)",
        lambda call: ask("llm_probability", call.text("prompt"), [call.value("text")]),
        "llm_probability(prompt, text)",
    ),
    function(
        "ai_choose(text, prompt, criteria)",
        lambda call: answer(_question(call, "choice"), [call.value("text")]),
        "llm_map(prompt, text, options => criteria)",
    ),
    function(
        "ai_score(text, prompt, criteria)",
        _score,
        "named_struct('score', llm_score(prompt, text, levels => criteria), 'probabilities', …)",
    ),
)
