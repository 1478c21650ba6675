"""Translates Snowflake's AI_… functions, after its SQL reference of 2025."""

from __future__ import annotations

from collections.abc import Callable
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
    listed,
    translated,
    two,
)
from blendfusion.sql.source_map import Translation
from blendfusion.udfs.declare.arguments import quoted

SENTIMENTS = [(s, "") for s in ("positive", "negative", "neutral", "mixed", "unknown")]


def _filter(call: Call) -> Written:
    if not call.has("value"):
        return asks("llm_filter", call, "input")
    return _about("llm_filter", call, "input", "value")


def _about(ours: str, call: Call, question: str, value: str) -> Written:
    """A question with one value more, such as a file, beside those in its prompt."""
    text, values = call.prompt(question)
    yield f"{ours}({quoted(text)}"
    for inside in (*values, call.value(value)):
        yield ", "
        yield from inside
    yield ")"


def _config(call: Call) -> dict[str, str]:
    return dict(call.pairs("config_object")) if call.has("config_object") else {}


def _label(call: Call) -> Written:
    if _config(call).get("output_mode", "single") != "single":
        return (p for part in (_labels(call), ["[1]"]) for p in part)
    question = _config(call).get("task_description", "")
    return classifies(call, "input", call.texts("list_of_categories"), question)


def _labels(call: Call) -> Written:
    config, labels = _config(call), call.texts("list_of_categories")
    if config.get("output_mode", "single") == "single":
        return _wrapped("make_array(", _label(call), ")")
    question = config.get("task_description", "Which of these fit?")
    options = [f"options => {listed(labels)}", "returns => 'list+'"]
    return fixed("llm_map", question, call, "input", *options)


def _wrapped(before: str, inside: Written, behind: str) -> Written:
    yield before
    yield from inside
    yield behind


def _classify(call: Call) -> Written:
    return _wrapped("named_struct('labels', ", _labels(call), ")")


def _fields(call: Call) -> list[tuple[str, str, str]]:
    name = "responseFormat"
    if call.is_object(name):
        return [(key, "TEXT", question) for key, question in call.pairs(name)]
    return [(key, "TEXT", about or key) for key, about in call.texts(name)]


def _extract(call: Call) -> Written:
    return extracts(call, "text", _fields(call))


def _extract_response(call: Call) -> Written:
    return _wrapped("named_struct('response', ", _extract(call), ")")


def _extract_field(call: Call, field: str) -> Written:
    names = {name.lower(): name for name, _, _ in _fields(call)}
    if field not in names:
        raise call.refused("responseFormat", f"no field '{field}' is asked for")
    return _wrapped("", _extract(call), f"[{quoted(names[field])}]")


def _overall(call: Call) -> Written:
    return classifies(call, "text", SENTIMENTS, "What is the overall sentiment?")


def _sentiments(call: Call) -> Written:
    """The list of structs that AI_SENTIMENT gives: the overall sentiment, and that of each
    category."""
    yield "make_array(named_struct('name', 'overall', 'sentiment', "
    yield from _overall(call)
    yield ")"
    for category, _ in call.texts("categories") if call.has("categories") else []:
        yield f", named_struct('name', {quoted(category)}, 'sentiment', "
        yield from classifies(call, "text", SENTIMENTS, f"What is the sentiment about {category}?")
        yield ")"
    yield ")"


def _complete(call: Call) -> Written:
    if not call.has("response_format"):
        return asks("llm_text", call, "prompt")
    question, values = call.prompt("prompt")
    if len(values) != 1:
        raise call.refused(
            "response_format",
            "a response format needs one value in the prompt",
            "Write llm_extract(value, 'name TEXT, …', question => '…').",
        )
    return _structured(call, question)


def _structured(call: Call, question: str) -> Written:
    _, (value,) = call.prompt("prompt")
    yield "llm_extract("
    yield from value
    yield f", {quoted(call.text('response_format'))}, question => {quoted(question)})"


def _translate(call: Call) -> Written:
    source, target = call.text("source_language"), call.text("target_language")
    from_ = f" from the language '{source}'" if source else ""
    question = f"Translate the text{from_} to the language '{target}'."
    return fixed("llm_text", question, call, "text")


def _qa(call: Call) -> Written:
    yield f"llm_qa({quoted(call.text('task_description'))}, "
    yield from call.value("expr")
    yield ")"


def _one(ours: str, name: str) -> Callable[[Call], Written]:
    return lambda call: _wrapped(f"{ours}(", call.value(name), ")")


FUNCTIONS = (
    Function("AI_FILTER", ("input", "value"), 1, _filter),
    Function(
        "AI_CLASSIFY",
        ("input", "list_of_categories", "config_object"),
        2,
        _classify,
        {("labels", "0"): _label, ("labels",): _labels},
    ),
    Function(
        "AI_EXTRACT",
        ("text", "responseFormat"),
        2,
        _extract_response,
        {("response",): _extract},
        open_fields=_extract_field,
        base=("response",),
    ),
    Function("AI_AGG", ("expr", "task_description"), 2, _qa),
    Function("AI_SUMMARIZE_AGG", ("expr",), 1, _one("llm_summarize", "expr")),
    Function(
        "AI_SIMILARITY",
        ("input1", "input2"),
        2,
        partial(two, "llm_similarity", first="input1", second="input2"),
    ),
    Function(
        "AI_SENTIMENT",
        ("text", "categories"),
        1,
        lambda call: _wrapped("named_struct('categories', ", _sentiments(call), ")"),
        {("categories", "0", "sentiment"): _overall, ("categories",): _sentiments},
    ),
    Function(
        "AI_COMPLETE",
        ("model", "prompt", "model_parameters", "response_format"),
        2,
        _complete,
        ignored=frozenset({"show_details"}),
    ),
    Function("AI_TRANSLATE", ("text", "source_language", "target_language"), 3, _translate),
)


def translate(text: str, known: Known) -> Translation:
    """``text`` in our SQL. Raises QueryError, with the span in ``text``, for a form that has no
    translation."""
    return translated(text, FUNCTIONS, "snowflake")
