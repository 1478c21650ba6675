"""The protocols of decision models: the body of a request, and the probabilities of a reply.

Each reply is checked, and every figure but the probabilities is computed here: providers round them
to two decimals, state several confidences under one name, and choices that are not the likeliest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.services.decisions.question import Question

Body = dict[str, Json]

_TYPES = {
    "boolean": ("boolean", "noul", "predicate", "yes_no"),
    "choice": ("choice",),
    "score": ("score",),
}
"""The words of all protocols for each kind of question."""
_ROUNDING = 0.005
"""The error of a probability with two decimals."""


class UnusableAnswerError(Exception):
    """One answer of a reply is missing, or is none to its question."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a request may hold."""

    questions: int
    options: int
    levels: int = 10


@dataclass(frozen=True, slots=True)
class Protocol:
    """One form of requests and replies. ``url``: the owner's server, '' if it has none.
    ``variables``: where a key, and another server, are looked for."""

    name: str
    path: str
    url: str
    url_variable: str
    key_variable: str
    limits: Limits
    request: Callable[[str, Json, Sequence[Question]], Body]
    answers: Callable[[Body, Sequence[Question]], list[list[float] | UnusableAnswerError]]
    """The probabilities of each question's options (yes, no), or levels, in their order."""


def _ids(count: int) -> list[str]:
    return [f"q{place}" for place in range(1, count + 1)]


# ---------------------------------------------------------------- System One


def _systemone_request(model: str, state: Json, questions: Sequence[Question]) -> Body:
    pairs = zip(_ids(len(questions)), questions, strict=True)
    entries: Body = {name: _systemone_question(question) for name, question in pairs}
    return {"model": model, "state": state, "questions": entries}


def _systemone_question(question: Question) -> Body:
    if question.kind == "boolean":
        return {"type": "noul", "instructions": question.text}
    criteria: Json = [*question.level_names] if question.kind == "score" else _criteria(question)
    return {"type": question.kind, "instructions": question.text, "criteria": criteria}


def _criteria(question: Question) -> Body:
    pairs = zip(question.options, question.meanings, strict=True)
    return {option: meaning or None for option, meaning in pairs}


def _systemone_answers(
    reply: Body, questions: Sequence[Question]
) -> list[list[float] | UnusableAnswerError]:
    answers = reply.get("answers")
    known = answers if isinstance(answers, dict) else {}
    ids = _ids(len(questions))
    return [_read(_systemone_odds, known.get(i), q) for i, q in zip(ids, questions, strict=True)]


def _systemone_odds(answer: Body, question: Question) -> list[float]:
    if question.kind == "boolean":
        stated = answer.get("noul", answer.get("probability"))
        return [yes := _probability(stated), 1 - yes]
    stated = answer.get("probabilities")
    names = question.options if question.kind == "choice" else _places(question)
    if not isinstance(stated, dict) or {*stated} != {*names}:
        _unusable("other options than the question's")
    return _normalised([_probability(stated[name]) for name in names])


def _places(question: Question) -> list[str]:
    return [str(place) for place in range(len(question.levels))]


# ---------------------------------------------------------------- OpenAI


def _openai_request(model: str, state: Json, questions: Sequence[Question]) -> Body:
    names = _ids(len(questions))
    entries: list[Json] = [
        _openai_question(question) | {"name": name}
        for name, question in zip(names, questions, strict=True)
    ]
    content: Json = state
    if not isinstance(state, str) or not state:
        part: Json = {"type": "input_json", "data": state}
        content = [{"role": "user", "content": [part]}]
    return {"model": model, "input": content, "questions": entries}


def _openai_question(question: Question) -> Body:
    body: Body = {"instructions": question.text}
    if question.kind == "boolean":
        return body | {"type": "predicate"}
    if question.kind == "score":
        levels: list[Json] = [{"label": name} for name in question.level_names]
        return body | {"type": "score", "levels": levels}
    pairs = zip(question.options, question.meanings, strict=True)
    choices: list[Json] = [
        {"value": option, "description": meaning} if meaning else {"value": option}
        for option, meaning in pairs
    ]
    return body | {"type": "choice", "choices": choices}


def _openai_answers(
    reply: Body, questions: Sequence[Question]
) -> list[list[float] | UnusableAnswerError]:
    answers = reply.get("answers")
    listed = answers if isinstance(answers, list) else []
    named = {str(one.get("name")): one for one in listed if isinstance(one, dict)}
    if len(named) < len(listed):
        named = {}
    ids = _ids(len(questions))
    return [_read(_openai_odds, named.get(i), q) for i, q in zip(ids, questions, strict=True)]


def _openai_odds(answer: Body, question: Question) -> list[float]:
    if answer.get("type") == "refusal":
        _unusable("a refusal")
    if question.kind == "boolean":
        return [yes := _probability(answer.get("probability")), 1 - yes]
    stated = answer.get("probabilities")
    names = question.options if question.kind == "choice" else _places(question)
    pairs = {
        str(one.get("value")): one.get("probability")
        for one in (stated if isinstance(stated, list) else ())
        if isinstance(one, dict)
    }
    if {*pairs} != {*names}:
        _unusable("other options than the question's")
    return _normalised([_probability(pairs[name]) for name in names])


# ---------------------------------------------------------------- SGLang


def _sglang_request(model: str, state: Json, questions: Sequence[Question]) -> Body:
    names = _ids(len(questions))
    entries: list[Json] = [
        _sglang_question(question) | {"id": name}
        for name, question in zip(names, questions, strict=True)
    ]
    return {"model": model, "input": state, "questions": entries}


def _sglang_question(question: Question) -> Body:
    body: Body = {"question": question.text}
    if question.kind == "boolean":
        return body | {"type": "yes_no"}
    if question.kind == "score":
        return body | {"type": "score", "levels": [*question.level_names]}
    pairs = zip(question.options, question.meanings, strict=True)
    options: list[Json] = [
        {"name": option, "description": meaning} if meaning else {"name": option}
        for option, meaning in pairs
    ]
    return body | {"type": "choice", "options": options}


def _sglang_answers(
    reply: Body, questions: Sequence[Question]
) -> list[list[float] | UnusableAnswerError]:
    answers = reply.get("answers")
    known = answers if isinstance(answers, dict) else {}
    ids = _ids(len(questions))
    return [_read(_sglang_odds, known.get(i), q) for i, q in zip(ids, questions, strict=True)]


def _sglang_odds(answer: Body, question: Question) -> list[float]:
    stated = answer.get("probabilities")
    if not isinstance(stated, dict):
        _unusable("no probabilities")
    if question.kind == "boolean":
        names: Sequence[str] = ("yes", "no")
    elif question.kind == "choice":
        names = question.options
    else:
        names = _places(question) if "0" in stated else question.level_names
    if {*stated} != {*names}:
        _unusable("other options than the question's")
    return _normalised([_probability(stated[name]) for name in names])


# ---------------------------------------------------------------- checks


def _read(
    odds: Callable[[Body, Question], list[float]], answer: Json, question: Question
) -> list[float] | UnusableAnswerError:
    if not isinstance(answer, dict):
        return UnusableAnswerError("the server left the question unanswered")
    if answer.get("type", question.kind) not in (*_TYPES[question.kind], "refusal"):
        return UnusableAnswerError("the server answered another kind of question")
    try:
        return odds(answer, question)
    except UnusableAnswerError as problem:
        return problem


def _probability(stated: Json) -> float:
    if not isinstance(stated, int | float) or isinstance(stated, bool) or not 0 <= stated <= 1:
        _unusable("a probability that is none")
    return float(stated)


def _normalised(odds: list[float]) -> list[float]:
    """Probabilities whose sum is 1. Raises UnusableAnswerError where rounding does not explain
    their sum."""
    total = sum(odds)
    if abs(total - 1) > _ROUNDING * (len(odds) + 2):
        _unusable(f"probabilities whose sum is {total:.3f}")
    return [one / total for one in odds]


def _unusable(what: str) -> NoReturn:
    raise UnusableAnswerError(f"the server's reply has {what}")


PROTOCOLS: Mapping[str, Protocol] = {
    one.name: one
    for one in (
        Protocol(
            *("systemone", "/v1/systemone", "", "TYPESAFE_BASE_URL"),
            *("TYPESAFE_API_KEY", Limits(questions=64, options=255)),
            *(_systemone_request, _systemone_answers),
        ),
        Protocol(
            *("decisions", "/decisions", "https://api.openai.com/v1", "OPENAI_BASE_URL"),
            *("OPENAI_API_KEY", Limits(questions=200, options=255)),
            *(_openai_request, _openai_answers),
        ),
        Protocol(
            *("sglang-decisions", "/decisions", "", "SGLANG_BASE_URL"),
            *("SGLANG_API_KEY", Limits(questions=64, options=26)),
            *(_sglang_request, _sglang_answers),
        ),
    )
}
"""By the schemes of models' names. The limits are the narrowest that providers document."""
