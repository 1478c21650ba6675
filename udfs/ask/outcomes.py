"""Maps model answers to result values according to on_error and confidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from blendfusion.errors import AnswerError, QueryError, by_surface
from blendfusion.models.protocol.model import Values
from blendfusion.options import OnError
from blendfusion.redaction import Redaction
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.calibrations import calibrate_answers
from blendfusion.udfs.ask.decode import value
from blendfusion.udfs.ask.evidence_results import stated_answer, with_evidence
from blendfusion.udfs.ask.reviews import review_answers
from blendfusion.udfs.declare.call import CONFIDENCE, ERROR, REASON, VALUE, Call
from blendfusion.udfs.declare.cast_answers import misfits

if TYPE_CHECKING:
    from blendfusion.udfs.ask.requests import Requests


class NoConfidence(QueryError):
    """A model gave answers to ``call`` without their probabilities, which the call needs."""

    def __init__(self, call: Call, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.call = call


_ROUNDING = 1e-9
"""A probability is stored as its logarithm."""
_DECIMALS = 9
"""Digits after the point of the probabilities that are results."""


def outcomes(
    call: Call,
    answers: Sequence[Answer],
    values: Sequence[Values],
    dispatcher: Requests,
    *,
    task: Task | None = None,
    to: pa.DataType | None = None,
    on_error: OnError | None = None,
) -> list[object]:
    """One result an answer, in order, as the Python value that Arrow takes for the call's type.

    A failed answer is NULL and noted by the observer, or is kept with its reason, or raises
    AnswerError: as ``on_error`` says, else the call, else the session. An answer below the call's
    confidence is NULL, noted by the observer, and no failure. ``task`` and ``to``: the task and the
    type of its answers, where these are not the call's own. Raises QueryError where the call needs
    probabilities and the model gives none."""
    to = call.value_type if to is None else to
    if call.casts:
        answers = _cast_answers(call.casts, answers, to)
    if call.calibrated:
        _check_probabilities(call, answers, dispatcher)
        answers = calibrate_answers(call, answers, dispatcher)
    if call.gives_probabilities or call.threshold is not None:
        answers = _by_probability(call, answers, dispatcher)
    policy = on_error or dispatcher.policy(call)
    errors = policy == "keep"
    failed = {v: a for v, a in zip(values, answers, strict=True) if a.error is not None}
    if call.review:
        review_answers(call, values, answers, answers, dispatcher)
    if failed and policy == "raise":
        raise failure(call, failed, len(values), dispatcher.redaction)
    if failed and not errors:
        dispatcher.observer.note_failures(task or call.task, failed)
    if call.confidence is not None and not call.gives_probabilities:
        _check_probabilities(call, answers, dispatcher)
    if isinstance(call.confidence, float):
        stated = answers
        answers = _sure(call, call.confidence, answers, values, dispatcher)
        if call.review:
            review_answers(call, values, stated, answers, dispatcher)
    if call.stated:
        answers = _state_facts(call, answers, values, dispatcher)
    if call.evidence:
        return list[object](with_evidence(call, answers, values))
    confidence = call.confidence == "keep"
    if not (errors or confidence or call.reasons):
        return [value(answer.text, to) for answer in answers]
    return [
        _result_struct(answer, to, errors=errors, confidence=confidence, reasons=call.reasons)
        for answer in answers
    ]


def arrow(results: Sequence[object], to: pa.DataType) -> pa.Array:
    """The results as an array of the type of a call."""
    if not pa.types.is_struct(to):
        return pa.array(results, to)
    # DataFusion takes a field of a NULL struct as it is, so the fields must be NULL themselves.
    rows: list[Any] = [result or {} for result in results]
    fields = [arrow([row.get(field.name) for row in rows], field.type) for field in to]
    return pa.StructArray.from_arrays(
        fields, fields=list(to), mask=pa.array([r is None for r in results], pa.bool_())
    )


def _cast_answers(
    casts: Sequence[str], answers: Sequence[Answer], to: pa.DataType
) -> Sequence[Answer]:
    """The answers; one that the query cannot cast to these types is a failed one."""
    decoded = arrow([value(answer.text, to) for answer in answers], to)
    found = list(answers)
    for cast in casts:
        for i in misfits(decoded, cast):
            reason = f"the answer cannot be cast to {cast}"
            found[i] = replace(found[i], text=None, finish="error", error=reason)
    return found


def _result_struct(
    answer: Answer, to: pa.DataType, *, errors: bool, confidence: bool, reasons: bool
) -> dict[str, object] | None:
    if answer.text is None and (answer.error is None or not errors):
        return None  # there was nothing to answer, or nothing of it is to be kept
    kept: dict[str, object] = {VALUE: value(answer.text, to)}
    if confidence:
        kept[CONFIDENCE] = answer.probability
    if reasons:
        kept[REASON] = answer.reason
    if errors:
        kept[ERROR] = answer.error
    return kept


def _by_probability(
    call: Call, answers: Sequence[Answer], dispatcher: Requests
) -> Sequence[Answer]:
    """The answers with the results of probabilities as their texts; those to other questions than
    yes or no have them already."""
    if call.task.constraint.kind != "boolean":
        return answers
    _check_probabilities(call, answers, dispatcher)
    return [_read_yes(call, answer) for answer in answers]


def _read_yes(call: Call, answer: Answer) -> Answer:
    if answer.text is None:
        return answer
    if answer.probability is None:
        return replace(answer, text=None, error="its probability is not known")
    yes = answer.probability if answer.text == "true" else 1 - answer.probability
    yes = round(yes, _DECIMALS)
    if call.threshold is not None:
        text = "true" if yes >= call.threshold - _ROUNDING else "false"
    elif call.ingredient.probability:
        text = repr(yes)
    else:
        text = json.dumps({"true": yes, "false": round(1 - yes, _DECIMALS)})
    return replace(answer, text=text)


def check_first_probabilities(call: Call, answers: Sequence[Answer], dispatcher: Requests) -> None:
    """Raise QueryError, before the other values are asked, if the call needs probabilities and the
    model has given none with its first answers."""
    by_yes = call.gives_probabilities or call.threshold is not None
    if by_yes:
        needed = call.calibrated or call.task.constraint.kind == "boolean"
    else:
        needed = call.calibrated or call.confidence is not None
    if needed and not any(answer.logprob is not None for answer in answers):
        _check_probabilities(call, answers, dispatcher)


def _check_probabilities(call: Call, answers: Sequence[Answer], dispatcher: Requests) -> None:
    """Raise QueryError if a model gave answers without any probability."""
    tells: dict[str, bool] = {}
    for answer in answers:
        if answer.text is not None:
            tells[answer.model] = tells.get(answer.model, False) or answer.logprob is not None
    silent = next((model for model, gives in tells.items() if not gives), None)
    if silent is not None:
        raise NoConfidence(
            call,
            f"{call.text}: {silent or dispatcher.info_of(call).name} does not tell how probable its answers are",
            hint="Local models do, servers that give logprobs, and a Python function that returns odds, "
            "{True: 0.9, False: 0.1}. Answers that were stored without are asked again after "
            f"{by_surface('session.clear_cache()', 'blendfusion cache clear')}.",
        )


def _sure(
    call: Call,
    least: float,
    answers: Sequence[Answer],
    values: Sequence[Values],
    dispatcher: Requests,
) -> list[Answer]:
    """The answers. An answer less probable than ``least`` becomes a failed one, with that as its
    error."""
    sure: list[Answer] = []
    unsure: list[Values] = []
    for v, answer in zip(values, answers, strict=True):
        probable = answer.probability or 0.0
        if answer.text is not None and probable < least - _ROUNDING:
            unsure.append(v)
            reason = f"withheld: its probability is {probable:.3g}, less than {least:g}"
            answer = replace(answer, text=None, error=reason)
        sure.append(answer)
    if unsure:
        dispatcher.observer.on_withheld(call, unsure)
    return sure


def _state_facts(
    call: Call, answers: Sequence[Answer], values: Sequence[Values], dispatcher: Requests
) -> list[Answer]:
    """The answers with the numbers and dates that the text of their value states."""
    kept = [stated_answer(call, *pair) for pair in zip(answers, values, strict=True)]
    fewer = [v for v, old, new in zip(values, answers, kept, strict=True) if new.text != old.text]
    if fewer:
        dispatcher.observer.on_withheld(call, fewer)
    return kept


def failure(
    call: Call, failed: Mapping[Values, Answer], among: int, redaction: Redaction
) -> AnswerError:
    """The error for values without a valid answer; ``among`` is the number of values that were
    asked."""
    first, answer = next(iter(failed.items()))
    return AnswerError(
        f"{call.text}: no valid answer for {redaction.row(first)}: "
        f"{redaction.reason(answer.error or 'no answer')} ({len(failed):,} of {among:,} failed)",
        hint="on_error => 'null' makes such values NULL, 'keep' keeps their errors. The other answers "
        f"are stored: the next run does not ask for them. {redaction.remedy}".strip(),
    )


def of_model(model: str | None, answer: Answer, *, final: bool) -> Answer:
    """An answer of this model (None: one whose name goes without saying)."""
    if answer.error is not None and not final:
        answer = Answer(None, usage=replace(answer.usage, failed=0), spent=answer.spent)
    if answer.spent or model is None:
        return answer
    return replace(answer, spent=((model, answer.usage),))
