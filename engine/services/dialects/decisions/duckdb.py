"""Translates the functions of DuckDB's extensions, of which three use the same names differently:
colliber's duckdb-jev, prasanthj's duckdb-jev, and anofox_decide."""

from __future__ import annotations

from blendfusion.services.dialects.warehouses.calls import Call, Function, Written, function
from blendfusion.services.dialects.warehouses.decision_calls import (
    answer,
    ask,
    criteria_of,
    distribution,
    naming_argument,
    question_from,
    struct_of,
    texts_of,
    threshold_of,
)
from blendfusion.udfs.declare.decision_questions import DecisionQuestion, question_by_shape

_TRACE = "frame.trace has what a query asked and spent."
_CONFIDENCE = (
    "Providers compute confidences in several ways. Write llm_map('question', x, options => […], "
    "confidence => 'keep')['confidence'] with dialect='sql'."
)

# --- colliber: the criteria are the question ------------------------------------------------------

BY_CRITERIA_REFUSED = {"JEV_USAGE": _TRACE}


def _by_shape(call: Call, argument: str, name: str, criteria: object) -> DecisionQuestion:
    with naming_argument(call, argument):
        return question_by_shape(name, criteria)


def _by_criteria(call: Call) -> Written:
    question = _by_shape(call, "criteria", "criteria", criteria_of(call, "criteria"))
    return answer(question, [call.value("text")])


def _named_questions(call: Call) -> list[DecisionQuestion]:
    given = call.literal("questions", "a literal struct of criteria")
    if not isinstance(given, dict) or not given:
        raise call.refusal("questions", "questions must be a literal struct of criteria here")
    return [_by_shape(call, "questions", name, criteria) for name, criteria in given.items()]


def _all_answers(call: Call) -> Written:
    return struct_of([(q.name, answer(q, [call.value("text")])) for q in _named_questions(call)])


def _one_answer(call: Call, name: str) -> Written:
    questions = {q.name.casefold(): q for q in _named_questions(call)}
    if name.casefold() not in questions:
        hint = _CONFIDENCE if name.endswith("_confidence") else f"It has {', '.join(questions)}."
        raise call.refusal(None, f"the answer has no field '{name}'", hint)
    return answer(questions[name.casefold()], [call.value("text")])


BY_CRITERIA: tuple[Function, ...] = (
    function(
        "jev_choice(text, criteria)", _by_criteria, "llm_map('Which …?', text, options => {…})"
    ),
    function(
        "jev_score(text, criteria)", _by_criteria, "llm_score('Which …?', text, levels => […])"
    ),
    function("jev_noul(text, criteria)", _by_criteria, "llm_probability('Does …?', text)"),
    function(
        "jev_ask(text, questions)",
        _all_answers,
        "named_struct('name', llm_map(…), …)",
        open_fields=_one_answer,
    ),
)

# --- prasanthj: structs of an answer and its probabilities ----------------------------------------

STRUCTS_REFUSED = {
    "JEV_STATS": _TRACE,
    "JEV_EVAL": "Write one function a question: jev_noul, jev_choice, jev_score.",
}


def _evidence_question(call: Call) -> DecisionQuestion:
    kind = call.function.name.removeprefix("jev_")
    spec: dict[str, object] = {"type": kind, "instructions": call.text("instructions")}
    if call.has("criteria"):
        spec["criteria"] = criteria_of(call, "criteria")
    return question_from(call, "criteria" if call.has("criteria") else "instructions", spec)


def _whole_struct(call: Call) -> Written:
    fields = [(name, _part_of_struct(call, name)) for name in ("answer", "probabilities")]
    return struct_of(fields)


def _part_of_struct(call: Call, name: str) -> Written:
    question = _evidence_question(call)
    if name == "answer":
        return answer(question, [call.value("evidence")])
    if name == "probabilities":
        return distribution(question, [call.value("evidence")])
    hint = _CONFIDENCE if name == "confidence" else "It has answer and probabilities."
    raise call.refusal(None, f"the answer has no field '{name}' here", hint)


STRUCTS: tuple[Function, ...] = (
    function(
        "jev(evidence, predicate, [threshold])",
        lambda call: ask(
            "llm_filter",
            call.text("predicate"),
            [call.value("evidence")],
            threshold_of(call, "threshold"),
        ),
        "llm_filter(predicate, evidence, threshold => 0.5)",
    ),
    *(
        function(
            signature,
            _whole_struct,
            f"named_struct('answer', {ours}, 'probabilities', …)",
            open_fields=_part_of_struct,
        )
        for signature, ours in (
            ("jev_noul(evidence, instructions, [criteria])", "llm_probability(…)"),
            ("jev_choice(evidence, instructions, criteria)", "llm_map(…)"),
            ("jev_score(evidence, instructions, criteria)", "llm_score(…)"),
        )
    ),
)

# --- anofox_decide --------------------------------------------------------------------------------

DECIDE_REFUSED = {
    "DECIDE_MANY": "Write one function a question, or bf.decide in Python.",
    "DECIDE_ANSWERS": "Write one function a question, or bf.decide in Python.",
    "DECIDE_TABLE": "Write one function a question in SELECT.",
    "DECIDE_ACCURACY": "frame.evaluate(labels) measures answers.",
    "DECIDE_BRIER_SCORE": "frame.evaluate(labels) measures answers.",
    "DECIDE_ECE": "frame.evaluate(labels) measures answers.",
    "DECIDE_FIT_CALIBRATION": "frame.evaluate(labels) measures answers.",
}


def _question_of_list(call: Call, name: str) -> DecisionQuestion:
    spec = {"question": call.text("question"), name: texts_of(call, name)}
    return question_from(call, name, spec)


DECIDE: tuple[Function, ...] = (
    function(
        "decide_probability(state, question, [model])",
        lambda call: ask("llm_probability", call.text("question"), [call.value("state")]),
        "llm_probability(question, state)",
    ),
    function(
        "decide_decision(state, question, threshold, [model])",
        lambda call: ask(
            "llm_filter",
            call.text("question"),
            [call.value("state")],
            threshold_of(call, "threshold"),
        ),
        "llm_filter(question, state, threshold => threshold)",
    ),
    function(
        "decide_choice(state, question, options, [model])",
        lambda call: answer(_question_of_list(call, "options"), [call.value("state")]),
        "llm_map(question, state, options => options)",
    ),
    function(
        "decide_choice_distribution(state, question, options, [model])",
        lambda call: distribution(_question_of_list(call, "options"), [call.value("state")]),
        "llm_map(question, state, options => options, confidence => 'all')",
    ),
    function(
        "decide_score(state, question, levels, [model])",
        lambda call: answer(_question_of_list(call, "levels"), [call.value("state")]),
        "llm_score(question, state, levels => levels)",
    ),
)
