"""Yes/no questions about a known subject: the log odds of a yes by the subject's words, plus those
of the question behind the text.

Words tell praise from blame, and the likelihood of the question tells subjects; the sum is better
than either (docs/lab.md). Each value is read twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blendfusion.models.llama.batch import Row, TaskBatch
from blendfusion.models.llama.binary_scale import YES
from blendfusion.models.llama.closed_set import ChoiceDecoder
from blendfusion.models.llama.query_likelihood import LikelihoodDecoder
from blendfusion.models.protocol.model import Values
from blendfusion.models.scores.option_trie import Scores
from blendfusion.models.verbalizer.query_likelihood import Odds, answer_of
from blendfusion.models.verbalizer.ways import Way
from blendfusion.types import Constraint


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
        self._odds: Odds | None = None
        self._prior: Scores | None = None

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        exact = self._scored is not None
        asking, values = self._asking, self._values
        self._rows_behind = {row: self._behind.row(values[asking.place(row)]) for row in rows}
        if near := self._decide(list(filter(self._fits, rows)), exact=exact):
            with asking.again(len(near)):
                self._decide(near, exact=True)

    def _decide(self, rows: Sequence[Row], *, exact: bool) -> list[Row]:
        """Settle the rows; those whose odds are nearer to even than the other rows of a run could
        make them are returned."""
        beside, noise = self._odds_behind(rows, exact=exact)
        asking = self._asking
        asking.begin()
        if self._prior is None:
            self._prior, *_ = self._words.priors(rows)
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
            self._odds = self._likelihood.odds(behind)
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
        return self._behind.held + len(self._rows_behind[row]) + self._likelihood.reserve
