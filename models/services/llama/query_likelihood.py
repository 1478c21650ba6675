"""Yes/no questions by their own likelihood behind the text, by yes against no behind both, and by
the similarity of both.

A row is the text; the tokens of the question follow one by one, and the logarithms of their
probabilities add up. Where the model's way weighs its answer, what leads to it follows.
``verbalizer.query_likelihood`` turns both into odds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from blendfusion.models.services.llama.batch import Row, Runs, TaskBatch
from blendfusion.models.services.verbalizer.label_words import TRUTH
from blendfusion.models.services.verbalizer.likeness import likeness
from blendfusion.models.services.verbalizer.query_likelihood import (
    Neutral,
    Odds,
    Score,
    answer_of,
    asks_same,
    neutral,
    neutral_values,
    way_for,
)
from blendfusion.models.services.verbalizer.similarity import similarities
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.types import Constraint


class LikelihoodDecoder:
    """Answers yes where question and answer are likelier than behind neutral texts."""

    def __init__(self, asking: TaskBatch, way: Way, scored: Constraint | None = None) -> None:
        """``scored``: the constraint of the score that is wanted instead of a yes or no."""
        self._asking = asking
        self._way = way = way_for(asking.task, way)
        self._scored = scored
        self.reads_texts = way.reads_texts
        layout, context = asking.layout, asking.context
        [question] = layout.prompt.replies
        self._question = tuple(context.tokenize(layout.lead + question, special=False))
        self._before_answer = asking.behind if way.answer else ()
        self._yes, self._no = (
            [context.tokenize(layout.answer_lead + word, special=False)[0] for word in words]
            for words in TRUTH
        )
        self.reserve = len(self._question) + len(self._before_answer)

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        asking, behind = self._asking, self.odds(rows)
        if self._scored is not None:
            self._decide(rows, behind, partial(asking.run, exact=True), noise=0.0)
            return
        asking.decide(rows, lambda some, run, noise: self._decide(some, behind, run, noise))

    def odds(self, rows: Sequence[Row]) -> Odds:
        """The odds of a yes by the scores of a row; ``rows``: the values that are asked
        together."""
        asking, task, prompt = self._asking, self._asking.task, self._way.prompt
        bare = replace(task, sample=())
        behind = Odds(self._way, asking.opened.neutral((bare, prompt), self._neutral))
        if task.sample:
            return behind.with_column(asking.opened.sample((task, prompt), self._sample))
        if asking.options.calibration == "column":
            return behind.with_column(self.scores(rows))
        return behind

    def scores(self, rows: Sequence[Row], *, exact: bool = False) -> list[Score]:
        """The scores of rows, without those of neutral texts; ``exact``: so that no row changes
        another's."""
        scores: list[Score] = [(0.0, 0.0, 0.0)] * len(rows)
        self._run(rows, partial(self._asking.run, exact=exact), scores.__setitem__)
        return scores

    def noise(self, behind: Odds) -> float:
        """Maximum change of the log odds by the other rows of a run."""
        return behind.noise(self._asking.noise, len(self._question))

    def _decide(self, rows: Sequence[Row], behind: Odds, run: Runs, noise: float) -> list[Row]:
        """Settle the rows; those whose odds are nearer to even than ``noise`` of a score could make
        them are returned."""
        ties: list[Row] = []
        least = behind.noise(noise, len(self._question))

        def settle(row: int, score: Score) -> None:
            if abs(behind.log(score)) < least:
                ties.append(rows[row])
                return
            self._asking.settle(rows[row], answer_of(behind.log(score), self._scored))

        self._run(rows, run, settle)
        return ties

    def _neutral(self) -> Neutral:
        rows = [self._asking.row(values) for values in neutral_values(self._asking.task)]
        return neutral(self.scores(rows))

    def _sample(self) -> list[Score]:
        return self.scores(self._asking.sample(self.reserve))

    def _run(self, rows: Sequence[Row], run: Runs, settle: Callable[[int, Score], None]) -> None:
        """Pass the index of each row and its scores to ``settle``."""
        totals = [0.0] * len(rows)
        seen = [0] * len(rows)
        question = self._question
        similar = self._similarities(rows)

        def step(row: int, logits: Any) -> Sequence[int]:
            place = seen[row]
            seen[row] += 1
            if place == len(question):
                answer = _log_sum(logits[self._yes]) - _log_sum(logits[self._no])
                settle(row, (totals[row], answer, similar[row]))
                return ()
            totals[row] += float(logits[question[place]]) - _log_sum(logits)
            if place + 1 < len(question):
                return (question[place],)
            if self._before_answer:
                return (question[place], *self._before_answer)
            settle(row, (totals[row], 0.0, similar[row]))
            return ()

        if not self.reads_texts:
            for row, similarity in enumerate(similar):
                settle(row, (0.0, 0.0, similarity))
            return
        if self._way.likelihood:
            run(rows, step, self.reserve)
            return
        # The answer alone: what leads to it is computed at once.
        seen = [len(question)] * len(rows)
        run([(*row, *question, *self._before_answer) for row in rows], step, 0)

    def _similarities(self, rows: Sequence[Row]) -> list[float]:
        """The cosines of the vectors of the question and of rows, or the likeness of two values."""
        if not self._way.similarity:
            return [0.0] * len(rows)
        if asks_same(self._asking.task):
            values = (self._asking.values(row) or ("", "") for row in rows)
            return [likeness(one or "", other or "") for one, other in values]
        [question] = self._asking.layout.prompt.replies
        end = -len(self._asking.tail)
        texts = [self._asking.context.text(row[:end]).strip() for row in rows]
        return similarities(question, texts)


def _log_sum(logits: Any) -> float:
    """The logarithm of the sum of the exponentials."""
    most = logits.max()
    return float(most) + float(np.log(np.exp(logits - most).sum(dtype=np.float64)))
