"""Odds of a yes by the likelihood of the question behind the text.

A small model that is asked a question answers by the tone of the text. The same model tells much
better which question fits a text: after a few texts, each with a question whose answer is yes,
"Does the customer want a refund?" is likelier behind a text whose writer wants one (query
likelihood: Ponte and Croft 1998, for ranking documents). No word list is needed.

The log probability of the question depends on its words, so it is compared with those behind
neutral texts (``calibration_texts``). In their standard deviations above their mean, it gives the
logarithm of the odds by the two weights of the model (``ways``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from blendfusion.models.protocol.model import Values
from blendfusion.models.verbalizer.calibration_texts import ANY
from blendfusion.models.verbalizer.ways import ByLikelihood
from blendfusion.options import Options
from blendfusion.types import Task

_LEAST_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class Neutral:
    """The log probabilities of a question behind neutral texts, summed over its tokens."""

    mean: float
    spread: float
    way: ByLikelihood

    @property
    def threshold(self) -> float:
        """The log probability at which yes and no are equally likely."""
        return self.mean + self.way.shift * self.spread

    def with_column(self, totals: Sequence[float]) -> Neutral:
        """With a threshold halfway to the mean of the values asked together."""
        middle = float(np.mean(totals)) - self.way.shift * self.spread
        return replace(self, mean=(self.mean + middle) / 2)

    def log_odds(self, total: float) -> float:
        """The logarithm of the odds of a yes, by the log probability behind a text.

        >>> Neutral(mean=-24.0, spread=2.0, way=ByLikelihood(1.0, 1.5)).log_odds(-20.0)
        0.5
        """
        return self.way.slope * (total - self.threshold) / self.spread


def by_likelihood(task: Task, options: Options) -> bool:
    """Whether the question may be answered by its likelihood: a yes/no question about the text of a
    row, without examples of its own."""
    return (
        task.constraint.kind == "boolean"
        and task.form == "question"
        and bool(task.question.strip())
        and not (task.aggregate or task.images or task.examples)
        and options.shots
        and options.wordings
        and options.calibration != "none"
    )


def neutral_values(task: Task) -> list[Values]:
    """The neutral texts, in every column."""
    return [(text,) * max(1, len(task.columns)) for text in ANY]


def neutral(totals: Sequence[float], way: ByLikelihood) -> Neutral:
    """The facts of the log probabilities behind ``neutral_values``."""
    return Neutral(float(np.mean(totals)), max(_LEAST_SPREAD, float(np.std(totals))), way)
