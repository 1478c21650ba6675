"""Odds of a yes by the likelihood of the question behind the text, by the answer behind both, and
by their similarity.

A small model that is asked a question answers by the tone of the text. The same model tells much
better which question fits a text: after a few texts, each with a question whose answer is yes,
"Does the customer want a refund?" is likelier behind a text whose writer wants one (query
likelihood: Ponte and Croft 1998, for ranking documents). No word list is needed. A larger model
answers well, too: yes against no is scored behind the question. Vectors of question and text tell
subjects that a small model does not know.

The scores depend on the words of the question, so they are compared with those behind neutral texts
(``calibration_texts``). The weights of the model (``ways``) make log odds of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.prompts.examples import shows_examples
from blendfusion.models.services.verbalizer.calibration_texts import ANY
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, Task

LIKELIHOOD_VERSION = 2
"""A part of fingerprints: change it with what makes odds of scores."""
_LEAST_SPREAD = 0.1

_SAME = re.compile(r"\bsame thing\b(?!.*\b(?:not|different)\b)", re.IGNORECASE)

Score = tuple[float, float, float]
"""The scores of a question and a text: the log probability of the question behind the text; the
log odds of yes against no behind both; the cosine of their vectors. 0.0: the way needs none."""


@dataclass(frozen=True, slots=True)
class Neutral:
    """The scores of a question behind neutral texts: mean and standard deviation of the likelihood,
    the mean of the answer."""

    likelihood: float
    spread: float
    answer: float

    def relative(self, score: Score) -> Score:
        """The likelihood in standard deviations above the mean, the answer above its mean.

        >>> Neutral(likelihood=-24.0, spread=2.0, answer=-1.0).relative((-20.0, 0.5, 0.3))
        (2.0, 1.5, 0.3)
        """
        likelihood, answer, similarity = score
        return (likelihood - self.likelihood) / self.spread, answer - self.answer, similarity


@dataclass(frozen=True, slots=True)
class Odds:
    """The odds of a yes to one question. ``shift``: the odds that are subtracted for the other
    values of a column, or for a sample of such."""

    way: Way
    neutral: Neutral
    shift: float = 0.0

    def log(self, score: Score) -> float:
        """The logarithm of the odds, by the scores of a text.

        >>> way = Way("text", likelihood=1.0, threshold=1.5)
        >>> Odds(way, Neutral(-24.0, 2.0, 0.0)).log((-20.0, 0.0, 0.0))
        0.5
        """
        likelihood, answer, similarity = self.neutral.relative(score)
        way = self.way
        answer += (1 - way.neutral_share) * self.neutral.answer
        odds = way.likelihood * likelihood + way.answer * answer + way.similarity * similarity
        return odds - way.threshold - self.shift

    def answer(self, score: Score) -> Answer:
        """The answer by the scores of a text, with its log probability.

        >>> odds = Odds(Way("text", likelihood=1.0), Neutral(-24.0, 2.0, 0.0))
        >>> odds.answer((-20.0, 0.0, 0.0)).text
        'true'
        """
        return answer_of(self.log(score))

    def with_column(self, scores: Sequence[Score]) -> Odds:
        """With a threshold halfway to the mean of the values asked together, or of a sample."""
        if not scores:
            return self
        middle = float(np.mean([self.log(score) for score in scores]))
        return replace(self, shift=self.shift + middle / 2)

    def noise(self, noise: float, tokens: int) -> float:
        """Maximum change of the log odds where each score of a token may change by ``noise``."""
        likelihood = abs(self.way.likelihood) * tokens / self.neutral.spread
        return noise * (likelihood + 2 * abs(self.way.answer))


def answer_of(odds: float, scored: Constraint | None = None) -> Answer:
    """The answer by the log odds of a yes: with its log probability, or the probability of yes on
    the scale of ``scored``.

    >>> answer_of(0.0, Constraint("score", scale=(0, 10))).text
    '5'
    """
    sure = -float(np.logaddexp(0.0, -abs(odds)))
    if scored is None:
        return Answer(str(odds > 0).lower(), logprob=sure)
    return degree_of(exp(sure) if odds > 0 else 1 - exp(sure), scored)


def degree_of(yes: float, scored: Constraint) -> Answer:
    """The answer on the scale of ``scored`` for the probability of a yes."""
    assert scored.scale is not None
    low, high = scored.scale
    return Answer(canonical({low: 1 - yes, high: yes}, scored))


def by_likelihood(task: Task, options: Options) -> bool:
    """Whether the question may be answered by its likelihood: a yes/no question about the text of a
    row, without examples of its own."""
    return (
        task.constraint.kind == "boolean"
        and task.form == "question"
        and bool(task.question.strip())
        and not (task.aggregate or task.images or task.examples)
        and shows_examples(options.shots)
        and options.wordings
        and options.calibration != "none"
    )


def about_text(question: str) -> Task:
    """The task of a yes/no question about one text."""
    return Task("llm_filter", question, Constraint("boolean"), ("text",))


def question_behind(task: Task, way: Way) -> Task:
    """The task with its question behind the text, as ``way`` scores it."""
    return replace(task, form="behind" if way_for(task, way).answer else "likelihood")


def neutral_values(task: Task) -> list[Values]:
    """The neutral texts; in several columns, texts that have nothing to do with each other.

    >>> task = Task("llm_filter", "Are both the same?", columns=("a", "b"))
    >>> any(a == b for a, b in neutral_values(task))
    False
    """
    columns = range(max(1, len(task.columns)))
    return [tuple(ANY[(row + column) % len(ANY)] for column in columns) for row in range(len(ANY))]


def asks_same(task: Task) -> bool:
    """Whether the question is if two values name the same thing, as that of llm_same and llm_join.

    >>> question = "Are both the same thing, perhaps written differently?"
    >>> asks_same(Task("llm_same", question, Constraint("boolean"), ("a", "b")))
    True
    >>> asks_same(Task("llm_filter", "Are both of the same colour?", columns=("a", "b")))
    False
    """
    return len(task.columns) == 2 and bool(_SAME.search(task.question))


def way_for(task: Task, way: Way) -> Way:
    """The weights for a task. A threshold is fitted to questions about one text. Whether two values
    name the same thing has weights of its own, ``similarity`` being their ``likeness``; of other
    questions about several values, those count as a yes that stand above unrelated ones
    (benchmarks/lab.md).

    >>> task = Task("llm_filter", "Do both fit?", columns=("a", "b"))
    >>> way_for(task, Way("chat", answer=1.0, threshold=2.5)).threshold
    0.0
    """
    if len(task.columns) < 2:
        return way
    if asks_same(task) and (way.same_answer or way.same_likeness):
        return replace(
            way,
            likelihood=0.0,
            answer=way.same_answer,
            similarity=way.same_likeness,
            threshold=way.same_threshold,
            neutral_share=1.0,
        )
    return replace(way, threshold=0.0, neutral_share=1.0)


def neutral(scores: Sequence[Score]) -> Neutral:
    """The facts of the scores behind ``neutral_values``."""
    likelihood, answer, _ = np.asarray(scores, dtype=np.float64).T
    spread = max(_LEAST_SPREAD, float(np.std(likelihood)))
    return Neutral(float(likelihood.mean()), spread, float(answer.mean()))
