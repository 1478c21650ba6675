"""Yes/no questions about a known subject: the log odds of a yes by the subject's words, plus those
of the question behind the text.

Words tell praise from blame, and the likelihood of the question tells subjects; the sum is better
than either (benchmarks/lab.md). Each value is read twice, portion by portion, so that the first
answers do not wait for all values to be read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from blendfusion.models.protocol.model import Values
from blendfusion.models.services.llama.batch import Row, TaskBatch
from blendfusion.models.services.llama.binary_scale import YES
from blendfusion.models.services.llama.closed_set import ChoiceDecoder
from blendfusion.models.services.llama.query_likelihood import LikelihoodDecoder
from blendfusion.models.services.verbalizer.option_trie import Scores
from blendfusion.models.services.verbalizer.query_likelihood import Odds, answer_of
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.types import Constraint

PORTION = 64
"""Rows that a CPU reads behind one prompt before it reads them behind the other: each change of the
prompt computes it anew."""


class IdeaDecoder:
    """Adds up the log odds of both readings. ``asking``: the question as words answer it;
    ``behind``: the same question behind the text, whose cost ``asking`` counts; ``scored``: the
    constraint of the score that is wanted instead of a yes or no."""

    def __init__(
        self,
        asking: TaskBatch,
        behind: TaskBatch,
        values: Sequence[Values],
        way: Way,
        scored: Constraint | None,
    ) -> None:
        behind.spent = asking.spent
        self._asking, self._behind = asking, behind
        self._values = values
        self._weight = way.ideas
        self._scored = scored
        self._words = ChoiceDecoder(asking)
        self._likelihood = LikelihoodDecoder(behind, way)
        self.reserve = self._words.reserve
        self._rows_behind: dict[Row, Row] = {}
        self._fitting: list[Row] = []
        self._odds: Odds | None = None
        self._prior: Scores | None = None

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        exact = self._scored is not None
        asking, values = self._asking, self._values
        self._rows_behind = {row: self._behind.row(values[asking.place(row)]) for row in rows}
        self._fitting = list(filter(self._fits, rows))
        near: list[Row] = []
        for portion in self._portions():
            near += self._decide(portion, exact=exact)
        if near:
            with asking.again(len(near)):
                self._decide(near, exact=True)

    def _portions(self) -> Iterator[list[Row]]:
        context, rows = self._asking.context, self._fitting
        size = context.slots if context.on_gpu else PORTION
        return (rows[start : start + size] for start in range(0, len(rows), size))

    def _decide(self, rows: Sequence[Row], *, exact: bool) -> list[Row]:
        """Settle the rows; those whose odds are nearer to even than the other rows of a run could
        make them are returned."""
        beside, noise = self._odds_behind(rows, exact=exact)
        asking = self._asking
        asking.begin()
        if self._prior is None:
            self._prior, *_ = self._words.priors(self._fitting)
        prior = self._prior
        root = self._words.root
        yes = root.next.index(YES)
        least = 0.0 if exact else noise + 2 * asking.noise * sum(root.weights)
        near: list[Row] = []

        def step(place: int, logits: Any) -> Sequence[int]:
            scores = root.scores(logits, prior)
            odds = float(scores[yes] - scores[1 - yes]) + beside[place]
            if abs(odds) < least:
                near.append(rows[place])
            else:
                answer = answer_of(odds, self._scored)
                asking.settle(rows[place], answer, self._tokens_behind(rows[place]))
            return ()

        asking.run(rows, step, 0, exact=exact)
        return near

    def _odds_behind(self, rows: Sequence[Row], *, exact: bool) -> tuple[list[float], float]:
        """(the weighed log odds of the question behind each row's text; their maximum change by the
        other rows of a run)"""
        self._behind.begin()
        behind = [self._rows_behind[row] for row in rows]
        if self._odds is None:
            every = [self._rows_behind[row] for row in self._fitting]
            self._odds = self._likelihood.odds(every)
        odds = self._odds
        scores = self._likelihood.scores(behind, exact=exact)
        noise = self._weight * self._likelihood.noise(odds)
        return [self._weight * odds.log(score) for score in scores], noise

    def _fits(self, row: Row) -> bool:
        """Whether the value leaves room for the question behind it; else it fails."""
        failure = self._behind.too_long(self._rows_behind[row], self._likelihood.reserve)
        if failure is not None:
            self._asking.settle(row, failure)
        return failure is None

    def _tokens_behind(self, row: Row) -> int:
        return self._behind.held_tokens + len(self._rows_behind[row]) + self._likelihood.reserve
