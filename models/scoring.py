"""Scores: what the odds of all points of a scale let expect.

Each row goes alone: a batch would change every score a little, and there is no tie to tell where
that matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blendfusion.models.asking import Asking, Row
from blendfusion.models.choosing import Choosing
from blendfusion.models.expected import chains, expected, spread
from blendfusion.models.options_tree import Fork, Scores, forks, log_softmax
from blendfusion.types import Answer


class Scoring:
    """Weighs the points of a scale, which are the options of a ``Choosing``."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._choosing = Choosing(asking)
        self._root = self._choosing.root
        self.reserve = self._choosing.reserve

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        priors = dict(zip(forks(self._root), self._choosing.priors(rows), strict=True))
        ways = chains(self._root)
        for row in rows:
            seen: dict[Fork, Scores] = {}
            for way in ways:
                self._follow(row, way, priors, seen)
            text = expected(spread(self._root, seen), self._asking.task.constraint)
            self._asking.settle(row, Answer(text))

    def _follow(
        self,
        row: Row,
        way: Sequence[Fork],
        priors: dict[Fork, Scores],
        seen: dict[Fork, Scores],
    ) -> None:
        """Note the scores of one row at the forks of a chain."""
        following = iter(way)
        at = next(following)

        def step(_row: int, logits: Any) -> Sequence[int]:
            nonlocal at
            seen[at] = log_softmax(at.scores(logits) - priors[at])
            before, at = at, next(following, at)
            return at.path[len(before.path) :]

        self._asking.run([(*row, *at.path)], step, self.reserve, slots=1)
