"""Evaluates comparisons: texts decide without a model if they can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.comparison import Comparing
from blendfusion.udfs.services.comparisons.quantities import order

_OPPOSITE = {"true": "false", "false": "true"}


def compare_pairs(call: Call, pairs: Sequence[Values], dispatcher: Dispatcher) -> list[Answer]:
    """One answer a pair, in order: true or false, none where either value is NULL or blank.

    A model is asked only of pairs whose texts do not decide it, each pair once.
    """
    comparing = call.comparing
    assert comparing is not None
    answers = [_certain(comparing, *pair) for pair in pairs]
    open_places = [i for i, answer in enumerate(answers) if answer is None]
    open_pairs: list[Values] = [comparing.canonical(*map(str, pairs[i])) for i in open_places]
    given = dispatcher.ask(call.task, open_pairs, call) if open_pairs else []
    for i, answer in zip(open_places, given, strict=True):
        answers[i] = _negate(answer) if comparing.is_negated else answer
    return [answer for answer in answers if answer is not None]


def _certain(comparing: Comparing, a: str | None, b: str | None) -> Answer | None:
    """The answer that needs no model; None if one must be asked."""
    if a is None or b is None or not a.strip() or not b.strip():
        return Answer(None)
    known = order(a, b)
    return None if known is None else Answer(str(comparing.holds(known)).lower())


def _negate(answer: Answer) -> Answer:
    return replace(answer, text=_OPPOSITE[answer.text]) if answer.text is not None else answer
