"""Translates Databricks' ai_… functions, after its SQL reference of 2025."""

from __future__ import annotations

from blendfusion.services.dialects.functions.databricks import DATABRICKS as SYSTEM
from blendfusion.services.dialects.warehouses.ai_decide import AI_DECIDE
from blendfusion.services.dialects.warehouses.calls import (
    Call,
    Warehouse,
    Written,
    asks,
    asks_also,
    classifies,
    extract_fields,
    extracts,
    fill,
    fixed_question,
    function,
    wrap,
)
from blendfusion.udfs.declare.arguments import sql_string

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


_KEPT = {"result": "value", "errormessage": "error"}
"""The fields of an answer whose error is kept, as ours."""


def _fails(call: Call) -> bool:
    """An answer that fails is NULL, not a struct with the error."""
    return not call.has("failOnError") or call.literal("failOnError", "TRUE") is True


def _kind(call: Call) -> str:
    return call.text("returnType").strip().upper() if call.has("returnType") else "STRING"


def _schema(call: Call) -> str | None:
    """The argument that gives the fields of the answer; None for an answer without fields."""
    if call.has("responseFormat"):
        return "responseFormat"
    return "returnType" if _kind(call).startswith("STRUCT<") else None


def _function(call: Call) -> str:
    if _kind(call) not in _RETURNS:
        known, kind = ", ".join(_RETURNS), call.text("returnType")
        raise call.refusal("returnType", f"no answer of type {kind}", f"Choose one of {known}.")
    return _RETURNS[_kind(call)]


def _query(call: Call) -> Written:
    if not _fails(call):
        answer, error = (_keep_error(call, ours) for ours in _KEPT.values())
        return ["named_struct('result', ", *answer, ", 'errorMessage', ", *error, ")"]
    schema = _schema(call)
    if schema is not None:
        return extract_fields(call, call.schema(schema), "request")
    return asks_also(_function(call), call, "request", "files")


def _keep_error(call: Call, name: str) -> Written:
    """The answer, or its error, of a call that keeps both."""
    if _schema(call) is not None or call.has("files"):
        hint = "llm_extract(value, 'name TEXT', on_error => 'keep') keeps the error beside them."
        raise call.refusal("failOnError", "failOnError must be TRUE with fields or files", hint)
    kept = asks(_function(call), call, "request", "on_error => 'keep'")
    return ["(", *kept, f")['{name}']"]


def _field(call: Call, name: str) -> Written:
    schema = _schema(call)
    if not _fails(call) and name in _KEPT:
        return _keep_error(call, _KEPT[name])
    if not _fails(call) or schema is None:
        raise call.refusal(
            None, f"there is no field '{name}'", "failOnError => false gives result."
        )
    return wrap("", extract_fields(call, call.schema(schema), "request"), f"[{sql_string(name)}]")


def _summarize(call: Call) -> Written:
    most = call.reader.source_text(*call.arguments["max_words"]) if call.has("max_words") else "0"
    if not most.isdigit():
        raise call.refusal("max_words", "max_words must be a literal number here")
    if int(most) == 0:
        return fill("llm_summary({content})", call)
    return fixed_question(
        "llm_text", f"Summarize the text in at most {most} words.", call, "content"
    )


def _mask(call: Call) -> Written:
    kinds = ", ".join(label for label, _ in call.texts("labels"))
    question = f"Copy the text, with [MASKED] in place of every part that is one of these: {kinds}."
    return fixed_question("llm_text", question, call, "content")


FUNCTIONS = (
    function(
        "ai_query(endpoint, request, [returnType, failOnError, modelParameters, responseFormat, "
        "files])",
        _query,
        "llm_text(question, value, …), llm_int, …, or llm_extract(value, responseFormat)",
        open_fields=_field,
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
    AI_DECIDE,
)
REFUSED = {
    "AI_FORECAST": "BlendFusion makes no forecasts.",
    "AI_PARSE_DOCUMENT": "Write FROM read_documents('reports/*.pdf').",
    "VECTOR_SEARCH": "Write FROM llm_search('documents', 'words', k => 5).",
}
WAREHOUSE = Warehouse("Databricks", "databricks", FUNCTIONS, REFUSED, SYSTEM)
