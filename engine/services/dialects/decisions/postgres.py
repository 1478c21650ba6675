"""Translates the functions of pg-jev and jevql: ``jev(t, 'asks for money back', 0.8)``."""

from __future__ import annotations

from blendfusion.services.dialects.warehouses.calls import Call, Function, Written, function, wrap
from blendfusion.services.dialects.warehouses.decision_calls import (
    answer,
    ask,
    question_from,
    row_values,
    texts_of,
    threshold_of,
)

REFUSED = {
    "JEV_CONFIDENCE": "Providers compute confidences in several ways. Write "
    "llm_filter('question', x, confidence => 'keep')['confidence'] with dialect='sql'.",
    "JEV_EVAL": "Write one function a question: jev_prob, jev_choice, jev_score.",
    "JEV_STATS": "frame.trace has what a query asked and spent.",
    "JEV_CACHE_CLEAR": "Write session.clear_cache().",
}


def _condition(call: Call) -> Written:
    least = threshold_of(call, "threshold")
    return ask("llm_filter", call.text("condition"), row_values(call, "row"), least)


def _choice(call: Call) -> Written:
    spec = {"question": call.text("question"), "options": texts_of(call, "options")}
    return answer(question_from(call, "options", spec), row_values(call, "row"))


def _score(call: Call) -> Written:
    spec = {"question": call.text("question"), "levels": texts_of(call, "levels")}
    return answer(question_from(call, "levels", spec), row_values(call, "row"))


def _share(call: Call) -> Written:
    highest = len(texts_of(call, "levels")) - 1
    return wrap("(", _score(call), f" / {highest})")


FUNCTIONS: tuple[Function, ...] = (
    function(
        "jev(row, condition, [threshold])",
        _condition,
        "llm_filter(condition, value, …, threshold => 0.5)",
    ),
    function(
        "jev_prob(row, condition)",
        lambda call: ask("llm_probability", call.text("condition"), row_values(call, "row")),
        "llm_probability(condition, value, …)",
    ),
    function(
        "jev_choice(row, question, options)",
        _choice,
        "llm_map(question, value, …, options => options)",
    ),
    function(
        "jev_score(row, question, levels)",
        _score,
        "llm_score(question, value, …, levels => levels)",
    ),
    function(
        "jev_score_norm(row, question, levels)",
        _share,
        "llm_score(question, value, …, levels => levels) divided by the highest level",
    ),
)
"""A row may be the alias of a table, columns in parentheses, or any value."""
