"""Chooses the way in which a model answers yes/no questions about no known idea.

The candidates are asked a third of the bank's questions of the part ``choose``; the best one is
asked the others, too, and its weights are fitted. What it is worth is measured on the part
``report``, on which nothing is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Protocol

import numpy as np

from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.tuning.bank import BankQuestion, bank
from blendfusion.models.services.tuning.fit import (
    Bools,
    Floats,
    Quality,
    ScoredQuestion,
    fit,
    left_out,
    odds,
    quality,
    relative_scores,
)
from blendfusion.models.services.tuning.pairs import quality_of_pairs, with_pairs
from blendfusion.models.services.verbalizer.calibration_texts import ANY
from blendfusion.models.services.verbalizer.parse_question import question_idea
from blendfusion.models.services.verbalizer.query_likelihood import Score, about_text
from blendfusion.models.services.verbalizer.ways import ALONE, Way, compares_vectors
from blendfusion.types import Answer, Task

WORDS = Way()
CANDIDATES = (
    WORDS,
    Way("text", likelihood=1.0),
    Way("text", likelihood=1.0, similarity=1.0),
    Way("text", answer=1.0),
    Way("text", likelihood=1.0, answer=1.0),
    Way("text", likelihood=1.0, answer=1.0, similarity=1.0),
    Way("chat", answer=1.0),
    Way("chat", likelihood=1.0, answer=1.0),
    Way("chat", likelihood=1.0, answer=1.0, similarity=1.0),
)
"""Later ones must be better than earlier ones. Weights other than 0 are fitted."""
IDEA_WEIGHTS = (0.0, 1.0, 2.0, 3.0, ALONE)
"""The candidates for ``Way.ideas``."""
_EVERY = 3
"""The candidates are compared by every third question."""

Progress = Callable[[str], None]


class Tunable(Protocol):
    """A model that asks by words, as far as it is used here. ``can_ask``: whether it tells the
    scores that a way weighs."""

    @property
    def abilities(self) -> Abilities: ...
    def can_ask(self, way: Way) -> bool: ...
    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]: ...
    def question_scores(self, task: Task, values: Sequence[Values], way: Way) -> list[Score]: ...


@dataclass(frozen=True)
class TuningResult:
    """The result: the chosen way with its figures, those of all candidates, by which it was
    chosen, and those of whether two names are the same; None where that was not fitted."""

    way: Way
    compared: tuple[tuple[Way, Quality], ...]
    pairs: Quality | None = None


def tune(model: Tunable, rows: int = 12, progress: Progress = lambda _: None) -> TuningResult:
    """The best way for a model, by ``rows`` texts a question. ``model`` asks by words: it was made
    with ``tuned=False``."""
    questions = list(bank("choose", rows))
    first = questions[::_EVERY]
    others = [one for place, one in enumerate(questions) if place % _EVERY]
    compared: list[tuple[Way, Quality]] = []
    known: dict[tuple[str, bool], list[ScoredQuestion]] = {}
    for way in CANDIDATES:
        if not model.can_ask(way) or (way.similarity and not compares_vectors()):
            continue
        progress(f"asking {len(first)} questions: {way}")
        if way == WORDS:
            compared.append((way, quality([_by_words(model, one) for one in first])))
            continue
        key = (way.prompt, bool(way.answer))
        if key not in known:
            known[key] = [_score_question(model, one, way) for one in first]
        compared.append((way, left_out(way, known[key])))
    best, _ = max(compared, key=lambda one: one[1].sum)
    if best != WORDS:
        progress(f"fitting its weights by {len(others)} more questions: {best}")
        scores = [*known[best.prompt, bool(best.answer)]]
        scores += [_score_question(model, one, best) for one in others]
        best = fit(best, scores)
        if model.abilities.scores_options:  # by words, which know some ideas
            best = replace(best, ideas=_weight_beside(model, best, [*first, *others], scores))
        progress("asking about pairs of names")
        best = with_pairs(model, best)
    report = list(bank("report", rows))
    progress(f"measuring it on {len(report)} other questions")
    found = quality(list(_answers(model, report, best)))
    way = replace(best, area=found.area, balanced=found.balanced)
    return TuningResult(
        way, tuple(compared), None if best.prompt == "words" else quality_of_pairs(model, way)
    )


def _weight_beside(
    model: Tunable, way: Way, questions: Sequence[BankQuestion], scores: Sequence[ScoredQuestion]
) -> float:
    """The weight of the odds of ``way`` beside the words of known ideas without an opposite that
    makes the right answers to such questions likeliest. ``scores``: those of ``questions``."""
    pairs = [
        (one.yes, _by_words(model, question)[0], odds(way, one.scores))
        for question, one in zip(questions, scores, strict=True)
        if (idea := question_idea(about_text(question.question))) is not None
        and not idea.has_opposite
    ]

    def loss(weight: float) -> float:
        losses = []
        for yes, words, behind in pairs:
            both = behind if weight == ALONE else words + weight * behind
            losses.append(np.logaddexp(0, np.where(yes, -1, 1) * both).mean())
        return float(np.mean(losses))

    return min(IDEA_WEIGHTS, key=loss)


def _answers(
    model: Tunable, questions: Sequence[BankQuestion], way: Way
) -> Iterator[tuple[Floats, Bools]]:
    for one in questions:
        if way == WORDS:
            yield _by_words(model, one)
        else:
            behind = _score_question(model, one, way)
            yield odds(way, behind.scores), behind.yes


def _by_words(model: Tunable, question: BankQuestion) -> tuple[Floats, Bools]:
    """The log odds of a model's own answers."""
    task = about_text(question.question)
    found = []
    for answer in model.answer(task, [(text,) for text in question.texts]):
        sure = exp(answer.logprob or 0.0)
        sure = float(np.log(sure / max(1e-12, 1 - sure)))
        found.append(sure if answer.text == "true" else -sure)
    return np.array(found), np.array(question.yes)


def _score_question(model: Tunable, question: BankQuestion, way: Way) -> ScoredQuestion:
    likelihood = float(model.can_ask(replace(way, likelihood=1.0)))
    every = replace(way, likelihood=likelihood, similarity=float(compares_vectors()))
    values = [(text,) for text in (*question.texts, *ANY)]
    scores = model.question_scores(about_text(question.question), values, every)
    texts = len(question.texts)
    return relative_scores(question.kind, scores[:texts], scores[texts:], question.yes)
