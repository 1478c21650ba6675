"""Fits the weights of a way to answers of the bank, and measures how well they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from blendfusion.models.guarantees.logistic import fit_classifier
from blendfusion.models.services.verbalizer.query_likelihood import Score, neutral
from blendfusion.models.services.verbalizer.ways import Way

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ScoredQuestion:
    """The scores of a question, compared with those behind neutral texts, and the mean answer
    behind these: one row of four numbers a text. ``yes``: the right answers."""

    kind: str
    scores: Floats
    yes: Bools


@dataclass(frozen=True)
class Quality:
    """The mean area under the ROC curve and the mean balanced accuracy of questions."""

    area: float
    balanced: float

    @property
    def sum(self) -> float:
        return self.area + self.balanced


def relative_scores(
    kind: str, scores: Sequence[Score], neutral_scores: Sequence[Score], yes: Sequence[bool]
) -> ScoredQuestion:
    """The scores of a question's texts, relative to the scores of neutral texts."""
    behind = neutral(neutral_scores)
    relative = np.array([(*behind.relative(score), behind.answer) for score in scores])
    return ScoredQuestion(kind, relative, np.asarray(yes, dtype=bool))


def fit(way: Way, questions: Sequence[ScoredQuestion]) -> Way:
    """``way`` with the weights that make its odds likeliest; a weight of zero stays zero, and the
    mean of answers has one where the answer has."""
    weights_before = (way.likelihood, way.answer, way.similarity, way.answer)
    used = [place for place, weight in enumerate(weights_before) if weight]
    rows = np.concatenate([one.scores[:, used] for one in questions])
    yes = np.concatenate([one.yes for one in questions]).astype(np.int64)
    weights = fit_classifier(rows, yes, 2).weights
    *slopes, constant = (float(weight) for weight in weights[:, 1] - weights[:, 0])
    every = [0.0, 0.0, 0.0, 0.0]
    for place, slope in zip(used, slopes, strict=True):
        every[place] = slope
    likelihood, answer, similarity, mean = every
    return replace(
        way,
        likelihood=likelihood,
        answer=answer,
        similarity=similarity,
        threshold=-constant,
        neutral_share=1 - mean / answer if answer else 1.0,
    )


def odds(way: Way, scores: Floats) -> Floats:
    """The log odds of relative scores."""
    return np.asarray(scores @ np.array(_weights(way)) - way.threshold)


def _weights(way: Way) -> tuple[float, float, float, float]:
    """The weights of the four numbers of ``ScoredQuestion``."""
    return way.likelihood, way.answer, way.similarity, way.answer * (1 - way.neutral_share)


def left_out(way: Way, questions: Sequence[ScoredQuestion]) -> Quality:
    """How well ``way`` answers, its weights fitted to questions about other kinds of text."""
    found = []
    for kind in dict.fromkeys(one.kind for one in questions):
        learned = fit(way, [one for one in questions if one.kind != kind])
        found += [(odds(learned, one.scores), one.yes) for one in questions if one.kind == kind]
    return quality(found)


def quality(answers: Sequence[tuple[Floats, Bools]]) -> Quality:
    """The quality of the log odds of questions, each with its right answers."""
    return Quality(_mean(area, answers), _mean(balanced_accuracy, answers))


def area(odds: Floats, yes: Bools) -> float:
    """The area under the ROC curve.

    >>> area(np.array([0.5, 0.9, 0.1]), np.array([True, True, False]))
    1.0
    """
    pairs = odds[yes][:, None] - odds[~yes]
    return float(np.mean((pairs > 0) + (pairs == 0) / 2))


def balanced_accuracy(odds: Floats, yes: Bools) -> float:
    """The mean share of right answers among the texts with a yes and among those with a no."""
    return float((np.mean(odds[yes] > 0) + np.mean(odds[~yes] <= 0)) / 2)


def _mean(
    figure: Callable[[Floats, Bools], float],
    answers: Sequence[tuple[Floats, Bools]],
) -> float:
    return float(np.mean([figure(*one) for one in answers]))
