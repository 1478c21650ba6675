"""Translates Databricks' ai_… functions, after its SQL reference of 2025."""

from __future__ import annotations

from blendfusion.dialects.functions.databricks import DATABRICKS as SYSTEM
from blendfusion.dialects.warehouses.calls import (
    Call,
    Warehouse,
    Written,
    asks_also,
    classifies,
    extracts,
    filled,
    fixed,
    function,
    structured,
)

_SENTIMENTS = [(s, "") for s in ("positive", "negative", "neutral", "mixed")]
_RETURNS = {
    "STRING": "llm_text",
    "BOOLEAN": "llm_bool",
    "INT": "llm_int",
    "BIGINT": "llm_int",
    "FLOAT": "llm_float",
    "DOUBLE": "llm_float",
    "DATE": "llm_date",
    "ARRAY<STRING>": "llm_list",
}


def _query(call: Call) -> Written:
    if call.has("failOnError") and call.literal("failOnError", "TRUE") is not True:
        problem = "failOnError must be TRUE here: an answer that fails is NULL, with a warning"
        hint = "llm_text(question, value, on_error => 'keep') keeps the error beside the answer."
        raise call.refused("failOnError", problem, hint)
    if call.has("responseFormat"):
        return structured(call, call.schema("responseFormat"), "request")
    kind = call.text("returnType").strip() if call.has("returnType") else "STRING"
    if kind.upper().startswith("STRUCT<"):
        return structured(call, call.schema("returnType"), "request")
    if kind.upper() not in _RETURNS:
        known = ", ".join(_RETURNS)
        raise call.refused("returnType", f"no answer of type {kind}", f"Choose one of {known}.")
    return asks_also(_RETURNS[kind.upper()], call, "request", "files")


def _summarize(call: Call) -> Written:
    most = call.reader.written(*call.arguments["max_words"]) if call.has("max_words") else "0"
    if not most.isdigit():
        raise call.refused("max_words", "max_words must be a literal number here")
    if int(most) == 0:
        return filled("llm_summary({content})", call)
    return fixed("llm_text", f"Summarize the text in at most {most} words.", call, "content")


def _mask(call: Call) -> Written:
    kinds = ", ".join(label for label, _ in call.texts("labels"))
    question = f"Copy the text, with [MASKED] in place of every part that is one of these: {kinds}."
    return fixed("llm_text", question, call, "content")


FUNCTIONS = (
    function(
        "ai_query(endpoint, request, [returnType, failOnError, modelParameters, responseFormat, "
        "files])",
        _query,
        "llm_text(question, value, …), llm_int, …, or llm_extract(value, responseFormat)",
    ),
    function(
        "ai_classify(content, labels)",
        lambda call: classifies(call, "content", call.texts("labels")),
        "llm_classify(content, labels)",
    ),
    function(
        "ai_extract(content, labels)",
        lambda call: extracts(call, "content", [(label, "") for label, _ in call.texts("labels")]),
        "llm_extract(content, 'label TEXT, …')",
    ),
    function("ai_similarity(content1, content2)", "llm_similarity({content1}, {content2})"),
    function(
        "ai_summarize(content, [max_words])",
        _summarize,
        "llm_summary(content), or llm_text('Summarize the text in at most …', content)",
    ),
    function("ai_gen(prompt)", "llm_text"),
    function(
        "ai_analyze_sentiment(content)",
        lambda call: classifies(call, "content", _SENTIMENTS, "What is the sentiment?"),
        "llm_classify(content, sentiments)",
    ),
    function("ai_mask(content, labels)", _mask, "llm_text('Copy the text, with …', content)"),
    function("ai_translate(content, to_lang)", "llm_translate({content}, {to_lang})"),
    function("ai_fix_grammar(content)", "llm_fix_grammar({content})"),
)
REFUSED = {
    "AI_FORECAST": "BlendFusion makes no forecasts.",
    "AI_PARSE_DOCUMENT": "Write FROM read_documents('reports/*.pdf').",
    "VECTOR_SEARCH": "Write FROM llm_search('documents', 'words', k => 5).",
}
WAREHOUSE = Warehouse("Databricks", "databricks", FUNCTIONS, REFUSED, SYSTEM)
