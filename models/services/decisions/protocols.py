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
class Protocol:
    """One form of requests and replies.

    ``path`` lies below the URL of a server. ``url`` is the owner's server, '' if it has none;
    ``url_variable`` and ``key_variable`` are variables of the environment that name another server,
    and a key. ``most_questions``: the fewest that a provider documents as its limit of a request;
    ``most_options``: those of a choice that some provider takes.
    """

    name: str
    path: str
    url: str
    url_variable: str
    key_variable: str
    most_questions: int
    most_options: int
    request: Callable[[str, Json, Sequence[Question]], Body]
    """The body of a request: of the model, the state and the questions."""
    odds: Callable[[Body, Question], list[float]]
    """The probabilities in one answer: of yes and no, or of each option or level in their order.
    Raises UnusableAnswerError."""


def read_answers(
    protocol: Protocol, reply: Body, questions: Sequence[Question]
) -> list[list[float] | UnusableAnswerError]:
    """The probabilities of each question, or what is wrong with its answer."""
    named = _by_name(reply.get("answers"))
    ids = _ids(len(questions))
    return [
        _read(protocol.odds, named.get(name), question)
        for name, question in zip(ids, questions, strict=True)
    ]


def _by_name(answers: Json) -> Mapping[str, Json]:
    """The answers by the names of their questions; none where several have one name."""
    if isinstance(answers, dict):
        return answers
    listed = answers if isinstance(answers, list) else []
    named = {str(one.get("name")): one for one in listed if isinstance(one, dict)}
    return named if len(named) == len(listed) else {}


def _ids(count: int) -> list[str]:
    return [f"q{place}" for place in range(1, count + 1)]


def _entries(
    questions: Sequence[Question], write: Callable[[Question], Body], name: str
) -> list[Json]:
    """The questions of a request as a list, each with its name in the field ``name``."""
    ids = _ids(len(questions))
    return [write(question) | {name: own} for own, question in zip(ids, questions, strict=True)]


def _options(question: Question, name: str) -> list[Json]:
    """The options of a choice, each in the field ``name``, with its meaning if it has one."""
    pairs = zip(question.options, question.meanings, strict=True)
    return [
        {name: option, "description": meaning} if meaning else {name: option}
        for option, meaning in pairs
    ]


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


def _systemone_odds(answer: Body, question: Question) -> list[float]:
    if question.kind == "boolean":
        stated = answer.get("noul", answer.get("probability"))
        return [yes := _probability(stated), 1 - yes]
    return _odds_of(answer.get("probabilities"), _names(question))


def _names(question: Question) -> Sequence[str]:
    """The names of the options of a choice, or of the levels of a score: their numbers from 0."""
    return question.options if question.kind == "choice" else _places(question)


def _places(question: Question) -> list[str]:
    return [str(place) for place in range(len(question.levels))]


# ---------------------------------------------------------------- OpenAI


def _openai_request(model: str, state: Json, questions: Sequence[Question]) -> Body:
    entries = _entries(questions, _openai_question, "name")
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
    return body | {"type": "choice", "choices": _options(question, "value")}


def _openai_odds(answer: Body, question: Question) -> list[float]:
    if answer.get("type") == "refusal":
        _unusable("a refusal")
    if question.kind == "boolean":
        return [yes := _probability(answer.get("probability")), 1 - yes]
    stated = answer.get("probabilities")
    pairs: Body = {
        str(one.get("value")): one.get("probability")
        for one in (stated if isinstance(stated, list) else ())
        if isinstance(one, dict)
    }
    return _odds_of(pairs, _names(question))


# ---------------------------------------------------------------- SGLang


def _sglang_request(model: str, state: Json, questions: Sequence[Question]) -> Body:
    entries = _entries(questions, _sglang_question, "id")
    return {"model": model, "input": state, "questions": entries}


def _sglang_question(question: Question) -> Body:
    body: Body = {"question": question.text}
    if question.kind == "boolean":
        return body | {"type": "yes_no"}
    if question.kind == "score":
        return body | {"type": "score", "levels": [*question.level_names]}
    return body | {"type": "choice", "options": _options(question, "name")}


def _sglang_odds(answer: Body, question: Question) -> list[float]:
    stated = answer.get("probabilities")
    if question.kind == "boolean":
        return _odds_of(stated, ("yes", "no"))
    by_number = question.kind == "choice" or (isinstance(stated, dict) and "0" in stated)
    return _odds_of(stated, _names(question) if by_number else question.level_names)


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


def _odds_of(stated: Json, names: Sequence[str]) -> list[float]:
    """The probabilities of these names and no others, in their order."""
    if not isinstance(stated, dict) or {*stated} != {*names}:
        _unusable("other options than the question's")
    return _normalise([_probability(stated[name]) for name in names])


def _probability(stated: Json) -> float:
    if not isinstance(stated, int | float) or isinstance(stated, bool) or not 0 <= stated <= 1:
        _unusable("a probability that is none")
    return float(stated)


def _normalise(odds: list[float]) -> list[float]:
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
            *("systemone", "/v1/systemone", "", "TYPESAFE_BASE_URL", "TYPESAFE_API_KEY"),
            *(64, 255, _systemone_request, _systemone_odds),
        ),
        Protocol(
            *("decisions", "/decisions", "https://api.openai.com/v1", "OPENAI_BASE_URL"),
            *("OPENAI_API_KEY", 200, 255, _openai_request),
            odds=_openai_odds,
        ),
        Protocol(
            *("sglang-decisions", "/decisions", "", "SGLANG_BASE_URL", "SGLANG_API_KEY"),
            *(64, 26, _sglang_request, _sglang_odds),
        ),
    )
}
"""The protocols by the schemes of models' names."""
