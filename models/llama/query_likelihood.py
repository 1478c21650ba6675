"""Yes/no questions by their own likelihood behind the text.

A row is the text; the tokens of the question follow one by one, and the logarithms of their
probabilities add up. ``verbalizer.query_likelihood`` turns the sum into odds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from blendfusion.models.llama.batch import Asking, Row, Runs
from blendfusion.models.verbalizer.query_likelihood import Neutral, neutral, neutral_values
from blendfusion.models.verbalizer.ways import ByLikelihood
from blendfusion.types import Answer


class Likelihood:
    """Answers yes where the question is likelier than behind neutral texts."""

    def __init__(self, asking: Asking, way: ByLikelihood) -> None:
        self._asking = asking
        self._way = way
        [question] = asking.layout.prompt.replies
        lead = asking.layout.lead
        self._question = tuple(asking.context.tokenize(lead + question, special=False))
        self.reserve = len(self._question) - 1

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        asking = self._asking
        behind = asking.opened.neutral(asking.task, self._neutral)
        if asking.options.calibration == "column":
            behind = behind.with_column(self._totals(rows))
        if near := self._decide(rows, behind, asking.run, asking.noise):
            self._decide(near, behind, asking.run_again, noise=0.0)

    def _decide(self, rows: Sequence[Row], behind: Neutral, run: Runs, noise: float) -> list[Row]:
        """Settle the rows; those nearer to a tie than ``noise`` a token are returned."""
        ties: list[Row] = []

        def settle(row: int, total: float) -> None:
            if abs(total - behind.threshold) < noise * len(self._question):
                ties.append(rows[row])
                return
            odds = behind.log_odds(total)
            logprob = -float(np.logaddexp(0.0, -abs(odds)))
            self._asking.settle(rows[row], Answer(str(odds > 0).lower(), logprob=logprob))

        self._run(rows, run, settle)
        return ties

    def _neutral(self) -> Neutral:
        task = self._asking.task
        rows = [self._asking.row(values) for values in neutral_values(task)]
        return neutral(self._totals(rows), self._way)

    def _totals(self, rows: Sequence[Row]) -> list[float]:
        totals = [0.0] * len(rows)
        self._run(rows, self._asking.run, totals.__setitem__)
        return totals

    def _run(self, rows: Sequence[Row], run: Runs, settle: Callable[[int, float], None]) -> None:
        """Pass the index of each row and the log probability of the question behind it to
        ``settle``."""
        totals = [0.0] * len(rows)
        seen = [0] * len(rows)

        def step(row: int, logits: Any) -> Sequence[int]:
            totals[row] += _logprob(logits, self._question[seen[row]])
            seen[row] += 1
            if seen[row] < len(self._question):
                return (self._question[seen[row] - 1],)
            settle(row, totals[row])
            return ()

        run(rows, step, self.reserve)


def _logprob(logits: Any, token: int) -> float:
    """The log probability of a token."""
    shifted = logits - logits.max()
    return float(shifted[token]) - float(np.log(np.exp(shifted).sum(dtype=np.float64)))
