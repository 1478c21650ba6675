"""Translates Databricks' ai_… functions, after its SQL reference of 2025."""

from __future__ import annotations

from functools import partial

from blendfusion.dialects.shared.catalog import Known
from blendfusion.dialects.warehouses.calls import (
    Call,
    Function,
    Written,
    asks,
    classifies,
    extracts,
    fixed,
    translated,
    two,
)
from blendfusion.sql.source_map import Translation
from blendfusion.udfs.declare.arguments import quoted

_SENTIMENTS = [(s, "") for s in ("positive", "negative", "neutral", "mixed")]
_RETURNS = {
    "STRING": "llm_text",
    "BOOLEAN": "llm_bool",
    "INT": "llm_int",
    "BIGINT": "llm_int",
    "FLOAT": "llm_float",
    "DOUBLE": "llm_float",
    "DATE": "llm_date",
}


def _query(call: Call) -> Written:
    if call.has("responseFormat"):
        return _structured(call, call.text("responseFormat"))
    kind = call.text("returnType").strip() if call.has("returnType") else "STRING"
    if kind.upper().startswith("STRUCT<"):
        return _structured(call, kind[len("STRUCT<") : -1].replace(":", " "))
    if kind.upper() not in _RETURNS:
        known = ", ".join(_RETURNS)
        raise call.refused("returnType", f"no answer of type {kind}", f"Choose one of {known}.")
    return asks(_RETURNS[kind.upper()], call, "request")


def _structured(call: Call, schema: str) -> Written:
    question, values = call.prompt("request")
    if len(values) != 1:
        raise call.refused(
            "request",
            "several fields need one value in the request",
            "Write llm_extract(value, 'name TEXT, …', question => '…').",
        )
    yield "llm_extract("
    yield from values[0]
    yield f", {quoted(schema)}, question => {quoted(question)})"


def _summarize(call: Call) -> Written:
    if not call.has("max_words"):
        return _wrapped("llm_summary(", call, ")")
    start, stop = call.arguments["max_words"]
    most = call.reader.written(start, stop)
    if not most.isdigit():
        raise call.refused("max_words", "max_words must be a literal number here")
    if int(most) == 0:
        return _wrapped("llm_summary(", call, ")")
    return fixed("llm_text", f"Summarize the text in at most {most} words.", call, "content")


def _wrapped(before: str, call: Call, behind: str) -> Written:
    yield before
    yield from call.value("content")
    yield behind


def _mask(call: Call) -> Written:
    kinds = ", ".join(label for label, _ in call.texts("labels"))
    question = f"Copy the text, with [MASKED] in place of every part that is one of these: {kinds}."
    return fixed("llm_text", question, call, "content")


FUNCTIONS = (
    Function(
        "ai_query",
        ("endpoint", "request", "returnType", "responseFormat"),
        2,
        _query,
        ignored=frozenset({"modelParameters"}),
    ),
    Function(
        "ai_classify",
        ("content", "labels"),
        2,
        lambda call: classifies(call, "content", call.texts("labels")),
    ),
    Function(
        "ai_extract",
        ("content", "labels"),
        2,
        lambda call: extracts(
            call, "content", [(label, "TEXT", "") for label, _ in call.texts("labels")]
        ),
    ),
    Function(
        "ai_similarity",
        ("content1", "content2"),
        2,
        partial(two, "llm_similarity", first="content1", second="content2"),
    ),
    Function("ai_summarize", ("content", "max_words"), 1, _summarize),
    Function("ai_gen", ("prompt",), 1, partial(asks, "llm_text")),
    Function(
        "ai_analyze_sentiment",
        ("content",),
        1,
        lambda call: classifies(call, "content", _SENTIMENTS, "What is the sentiment?"),
    ),
    Function("ai_mask", ("content", "labels"), 2, _mask),
    Function(
        "ai_translate",
        ("content", "to_lang"),
        2,
        lambda call: fixed(
            "llm_text",
            f"Translate the text to the language '{call.text('to_lang')}'.",
            call,
            "content",
        ),
    ),
    Function(
        "ai_fix_grammar",
        ("content",),
        1,
        lambda call: fixed("llm_text", "Correct the grammar of the text.", call, "content"),
    ),
)


def translate(text: str, known: Known) -> Translation:
    """``text`` in our SQL. Raises QueryError, with the span in ``text``, for a form that has no
    translation."""
    return translated(text, FUNCTIONS, "databricks")
