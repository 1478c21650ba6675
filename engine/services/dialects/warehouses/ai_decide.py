"""Translates Databricks' ``ai_decide(state, questions)``, whose questions are a constant JSON."""

from __future__ import annotations

from collections.abc import Callable

from blendfusion.services.dialects.warehouses.calls import (
    Call,
    Function,
    Path,
    Written,
    function,
)
from blendfusion.services.dialects.warehouses.decision_calls import (
    answer,
    distribution,
    questions_from,
    struct_of,
)
from blendfusion.udfs.declare.decision_questions import DecisionQuestion

_ANSWERS = ("response", "answers")
_VALUE = {"yes_no": "probability", "choice": "choice", "score": "score"}
"""The field of an answer, by the kind of its question."""


def _fields(call: Call, question: DecisionQuestion) -> dict[str, Callable[[], Written]]:
    values = [call.value("state")]
    fields: dict[str, Callable[[], Written]] = {
        _VALUE[question.kind]: lambda: answer(question, values)
    }
    if question.kind != "yes_no":
        fields["probabilities"] = lambda: distribution(question, values)
    return fields


def _whole(call: Call) -> Written:
    """The value of a row: its answers, and no error, since a failed answer is NULL."""
    answers = [
        (one.name, struct_of((name, write()) for name, write in _fields(call, one).items()))
        for one in questions_from(call, "questions")
    ]
    response = struct_of([("answers", struct_of(answers))])
    return struct_of([("response", response), ("error_message", ["CAST(NULL AS VARCHAR)"])])


def _field_writer(path: Path) -> Callable[[Call], Written] | None:
    """Writes the answer at ``response.answers.<id>.<field>``, which asks no other question."""
    if len(path) != len(_ANSWERS) + 2 or path[:2] != _ANSWERS:
        return None

    def write(call: Call) -> Written:
        questions = {one.name.casefold(): one for one in questions_from(call, "questions")}
        question = questions.get(path[2].casefold())
        if question is None:
            hint = f"There are {', '.join(questions)}."
            raise call.refusal(None, f"there is no question '{path[2]}'", hint)
        fields = _fields(call, question)
        if path[3] not in fields:
            raise call.refusal(
                None,
                f"the answer '{question.name}' has no field '{path[3]}' here",
                f"It has {' and '.join(fields)}.",
            )
        return fields[path[3]]()

    return write


AI_DECIDE: Function = function(
    "ai_decide(state, questions, [options])",
    _whole,
    "llm_probability(instructions, state), llm_map(…, options => criteria), or llm_score",
    field_writer=_field_writer,
    ignored=frozenset({"options"}),
)
