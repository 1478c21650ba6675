"""Translates Snowflake's AI_… functions, after its SQL reference of 2025."""

from __future__ import annotations

from functools import partial

from blendfusion.services.dialects.functions.snowflake import SNOWFLAKE as SYSTEM
from blendfusion.services.dialects.warehouses.calls import (
    Call,
    Warehouse,
    Written,
    asks,
    asks_also,
    classifies,
    classifies_prompt,
    extract_fields,
    extracts,
    fill,
    fixed_question,
    function,
    list_labels,
    wrap,
)
from blendfusion.udfs.declare.arguments import sql_string

SENTIMENTS = [(s, "") for s in ("positive", "negative", "neutral", "mixed", "unknown")]


def _config(call: Call) -> dict[str, str]:
    if not call.has("config_object"):
        return {}
    given = call.literal("config_object", "an object")
    if not isinstance(given, dict) or "examples" in given:
        hint = "Write llm_classify(value, labels, examples => …)."
        raise call.refusal("config_object", "config_object takes no examples here", hint)
    return {key: str(value) for key, value in given.items()}


def _is_single(call: Call) -> bool:
    return _config(call).get("output_mode", "single") == "single"


def _label(call: Call) -> Written:
    if not _is_single(call):
        return wrap("", _labels(call), "[1]")
    labels = call.texts("list_of_categories")
    if call.is_template("input"):
        return classifies_prompt(call, "input", labels)
    return classifies(call, "input", labels, _config(call).get("task_description", ""))


def _one_label(call: Call) -> Written:
    return classifies(call, "input", call.texts("list_of_categories"))


def _labels(call: Call) -> Written:
    if _is_single(call):
        return wrap("make_array(", _label(call), ")")
    question = _config(call).get("task_description", "Which of these fit?")
    options = [f"options => {list_labels(call.texts('list_of_categories'))}", "returns => 'list+'"]
    return fixed_question("llm_map", question, call, "input", *options)


def _fields(call: Call) -> list[tuple[str, str]]:
    given = call.literal("responseFormat", "a list or an object of texts")
    match given:
        case {"schema": {"properties": dict(fields)}}:
            known = ((k, f if isinstance(f, dict) else {}) for k, f in fields.items())
            return [(key, str(field.get("description") or key)) for key, field in known]
        case dict():
            return call.pairs("responseFormat")
    return [(key, about or key) for key, about in call.texts("responseFormat")]


def _extract(call: Call) -> Written:
    return extracts(call, "text", _fields(call))


def _extract_field(call: Call, field: str) -> Written:
    names = {name.lower(): name for name, _ in _fields(call)}
    if field not in names:
        raise call.refusal("responseFormat", f"no field '{field}' is asked for")
    return wrap("", _extract(call), f"[{sql_string(names[field])}]")


def _overall(call: Call) -> Written:
    return classifies(call, "text", SENTIMENTS, "What is the overall sentiment?")


def _sentiments(call: Call) -> Written:
    """The list of structs that AI_SENTIMENT gives: the overall sentiment, and that of each
    category."""
    yield "make_array(named_struct('name', 'overall', 'sentiment', "
    yield from _overall(call)
    for category, _ in call.texts("categories") if call.has("categories") else []:
        yield f"), named_struct('name', {sql_string(category)}, 'sentiment', "
        yield from classifies(call, "text", SENTIMENTS, f"What is the sentiment about {category}?")
    yield "))"


def _complete(call: Call) -> Written:
    if call.has("show_details") and call.literal("show_details", "FALSE"):
        raise call.refusal("show_details", "there are no details", "frame.trace has them.")
    if call.has("response_format") and not call.is_null("response_format"):
        return extract_fields(call, call.schema("response_format"))
    return asks("llm_text", call)


def _translate(call: Call) -> Written:
    source, target = call.text("source_language"), call.text("target_language")
    if not source:
        return fill("llm_translate({text}, {target_language})", call)
    question = f"Translate the text from the language '{source}' to the language '{target}'."
    return fixed_question("llm_text", question, call, "text")


def _complete_text(call: Call) -> Written:
    if call.has("options"):
        hint = "Write AI_COMPLETE(model, prompt), whose answer is a text."
        raise call.refusal("options", "with options the answer would be an object", hint)
    return asks("llm_text", call)


def _answer(call: Call) -> Written:
    return wrap(f"llm_text({sql_string(call.text('question'))}, ", call.value("source"), ")")


def _only_field(call: Call) -> Written:
    hint = "Write EXTRACT_ANSWER(source, question)[0]:answer."
    raise call.refusal(None, "its score has no equal here", hint)


FUNCTIONS = (
    function(
        "AI_FILTER(input, [value])",
        lambda call: asks_also("llm_filter", call, "input", "value"),
        "llm_filter(question, value, …)",
    ),
    function(
        "AI_CLASSIFY(input, list_of_categories, [config_object])",
        lambda call: wrap("named_struct('labels', ", _labels(call), ")"),
        "llm_classify(input, labels), or llm_map(…, options => labels, returns => 'list+')",
        fields={("labels", "0"): _label, ("labels",): _labels},
    ),
    function(
        "AI_EXTRACT(text, responseFormat)",
        lambda call: wrap("named_struct('response', ", _extract(call), ")"),
        "llm_extract(text, 'name TEXT, …')",
        fields={("response",): _extract},
        open_fields=_extract_field,
        base=("response",),
    ),
    function("AI_AGG(expr, task_description)", "llm_qa({task_description}, {expr})"),
    function("AI_SUMMARIZE_AGG(expr)", "llm_summarize({expr})"),
    function(
        "AI_SIMILARITY(input1, input2, [config_object])", "llm_similarity({input1}, {input2})"
    ),
    function(
        "AI_SENTIMENT(text, [categories])",
        lambda call: wrap("named_struct('categories', ", _sentiments(call), ")"),
        "llm_classify(text, sentiments)",
        fields={("categories", "0", "sentiment"): _overall, ("categories",): _sentiments},
    ),
    function(
        "AI_COMPLETE(model, prompt, [model_parameters, response_format, show_details])",
        _complete,
        "llm_text(question, value, …), or llm_extract(value, response_format)",
    ),
    function(
        "AI_TRANSLATE(text, source_language, target_language)",
        _translate,
        "llm_translate(text, target_language), or llm_text('Translate the text from …', text)",
    ),
    function("AI_EMBED(model, input)", "llm_embed({input})"),
    function("AI_REDACT(input)", "llm_redact({input})"),
    function(
        "AI_TRANSCRIBE(audio)",
        "named_struct('text', llm_transcribe({audio}))",
        "llm_transcribe(audio)",
        fields={("text",): partial(fill, "llm_transcribe({audio})")},
    ),
    function(
        "SNOWFLAKE.CORTEX.COMPLETE(model, prompt, [options])",
        _complete_text,
        "llm_text(question, value, …)",
    ),
    function(
        "SNOWFLAKE.CORTEX.CLASSIFY_TEXT(input, list_of_categories)",
        lambda call: wrap("named_struct('label', ", _one_label(call), ")"),
        "llm_classify(input, labels)",
        fields={("label",): _one_label},
    ),
    function(
        "SNOWFLAKE.CORTEX.EXTRACT_ANSWER(source, question)",
        _only_field,
        "llm_text(question, source)",
        fields={("0", "answer"): _answer},
    ),
    function("SNOWFLAKE.CORTEX.SUMMARIZE(text)", "llm_summary({text})"),
    function(
        "SNOWFLAKE.CORTEX.TRANSLATE(text, source_language, target_language)",
        _translate,
        "llm_translate(text, target_language), or llm_text('Translate the text from …', text)",
    ),
    function("SNOWFLAKE.CORTEX.EMBED_TEXT_768(model, text)", "llm_embed({text})"),
    function("SNOWFLAKE.CORTEX.EMBED_TEXT_1024(model, text)", "llm_embed({text})"),
)


REFUSED = {
    "AI_COUNT_TOKENS": "EXPLAIN of a query estimates its tokens.",
    "AI_PARSE_DOCUMENT": "Write FROM read_documents('reports/*.pdf').",
    "SNOWFLAKE.CORTEX.SENTIMENT": "Write AI_SENTIMENT(text), which gives words: this is a number.",
    "SNOWFLAKE.CORTEX.ENTITY_SENTIMENT": "Write AI_SENTIMENT(text, ['price']).",
    "SNOWFLAKE.CORTEX.PARSE_DOCUMENT": "Write FROM read_documents('reports/*.pdf').",
    "SNOWFLAKE.CORTEX.COUNT_TOKENS": "EXPLAIN of a query estimates its tokens.",
}
WAREHOUSE = Warehouse("Snowflake", "snowflake", FUNCTIONS, REFUSED, SYSTEM)
