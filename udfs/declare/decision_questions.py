"""Reads questions in the forms that decision models and their SQL functions take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

from blendfusion.errors import ArgumentError

Kind: TypeAlias = Literal["yes_no", "choice", "score"]

_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("noul", "yes_no", "predicate", "boolean"), "yes_no"),
    "choice": "choice",
    "score": "score",
}
"""The types of questions, by the names that protocols have for them."""
_WORDING = ("instructions", "question")
_CRITERIA = ("criteria", "options", "labels", "choices", "levels")
_FIELDS = ("type", *_WORDING, *_CRITERIA)
MOST_LEVELS = 10
"""The most levels of a score that decision models accept."""
_HINT = (
    "Write {'angry': 'Is the writer angry?', 'team': {'question': 'Which team?', 'options': "
    "['billing', 'bugs']}, 'urgency': {'question': 'How urgent?', 'levels': ['low', 'high']}}."
)


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """One named question. ``options`` of a choice, or the levels of a score from 0 on, lowest
    first; ``meanings``: that of each option, '' without one."""

    name: str
    kind: Kind
    text: str
    options: tuple[str, ...] = ()
    meanings: tuple[str, ...] = ()

    @property
    def choices(self) -> list[str] | dict[str, str]:
        """The options, with their meanings if one has any."""
        if not any(self.meanings):
            return [*self.options]
        pairs = zip(self.options, self.meanings, strict=True)
        return {option: meaning or option for option, meaning in pairs}


def read_questions(given: object) -> tuple[DecisionQuestion, ...]:
    """The questions of a mapping from names to questions, or of its JSON text, in their order.

    A question is a text (yes or no), or a mapping with ``question`` and ``options`` (a list, or a
    mapping of each option to its meaning) or ``levels``, or one of a decision model: ``type``,
    ``instructions``, ``criteria``. Raises ArgumentError for anything else."""
    if isinstance(given, str):
        try:
            given = json.loads(given, object_pairs_hook=_distinct)
        except ValueError as problem:
            _refuse(f"the questions are no JSON object ({problem})")
    if not isinstance(given, Mapping) or not given:
        _refuse("the questions are no mapping of names to questions")
    return tuple(_question(name, spec) for name, spec in given.items())


def question_by_shape(name: str, criteria: object) -> DecisionQuestion:
    """The question whose criteria alone are given: a mapping with only ``true`` and ``false`` is
    one of yes or no, another mapping a choice, a list a score."""
    if isinstance(criteria, Mapping) and criteria and {*criteria} <= {"true", "false"}:
        return DecisionQuestion(name, "yes_no", _yes_no_text("Does this hold?", criteria))
    if isinstance(criteria, Mapping):
        return DecisionQuestion(
            name, "choice", "Which option fits best?", *_options(name, criteria)
        )
    return DecisionQuestion(name, "score", "Which level fits best?", _levels(name, criteria))


def _question(name: object, spec: object) -> DecisionQuestion:
    if not isinstance(name, str) or not name.strip():
        _refuse(f"{name!r} is no name of a question")
    if isinstance(spec, str):
        spec = {"question": spec}
    if not isinstance(spec, Mapping):
        _refuse(f"the question '{name}' is a {type(spec).__name__}")
    for field in spec:
        if field not in _FIELDS:
            _refuse(f"the question '{name}' has a field '{field}', which no question has")
    wording = next((spec[field] for field in _WORDING if spec.get(field)), "")
    criteria = next((spec[field] for field in _CRITERIA if spec.get(field) is not None), None)
    kind = _kind(name, spec, criteria)
    text = wording if isinstance(wording, str) else json.dumps(wording, ensure_ascii=False)
    if not text.strip() and not criteria:
        _refuse(f"the question '{name}' says nothing")
    if kind == "yes_no":
        return DecisionQuestion(name, kind, _yes_no_text(text, criteria))
    if kind == "choice":
        return DecisionQuestion(
            name, kind, text or "Which option fits best?", *_options(name, criteria)
        )
    return DecisionQuestion(name, kind, text or "Which level fits best?", _levels(name, criteria))


def _kind(name: str, spec: Mapping[Any, Any], criteria: object) -> Kind:
    stated = spec.get("type")
    if stated is None:
        if criteria is None:
            return "yes_no"
        return "score" if "levels" in spec else "choice"
    if not isinstance(stated, str) or stated not in _KINDS:
        _refuse(f"the question '{name}' has the type {stated!r}; there are noul, choice and score")
    return _KINDS[stated]


def _yes_no_text(text: str, criteria: object) -> str:
    """The question, with what counts as a yes and as a no."""
    if not isinstance(criteria, Mapping):
        return text
    sides = (("yes", criteria.get("true")), ("no", criteria.get("false")))
    meanings = "; ".join(f"{side}: {_text(meaning)}" for side, meaning in sides if meaning)
    return f"{text} ({meanings})" if meanings else text


def _options(name: str, criteria: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(criteria, Mapping):
        options = tuple(map(str, criteria))
        meanings = tuple("" if one is None else _text(one) for one in criteria.values())
    elif isinstance(criteria, Sequence) and not isinstance(criteria, str):
        options, meanings = tuple(map(str, criteria)), ("",) * len(criteria)
    else:
        _refuse(f"the question '{name}' has no options")
    if not options or len({*options}) < len(options) or not all(map(str.strip, options)):
        _refuse(f"the options of the question '{name}' are not different texts")
    return options, meanings


def _levels(name: str, criteria: object) -> tuple[str, ...]:
    given = criteria if isinstance(criteria, Sequence) and not isinstance(criteria, str) else ()
    levels = tuple(map(_text, given))
    if not are_levels(levels):
        _refuse(f"the question '{name}' needs 2 to {MOST_LEVELS} different levels, lowest first")
    return levels


def are_levels(texts: Sequence[str]) -> bool:
    """Whether these are the descriptions of a scale: at least two, all different."""
    return 2 <= len({*texts}) == len(texts) <= MOST_LEVELS


def _text(given: object) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _refuse(problem: str) -> NoReturn:
    raise ArgumentError(problem, hint=_HINT)
