"""Scores as the expected value over all points of a scale.

Rows go exactly: where other rows change every score a little, there is no tie to tell where
that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from blendfusion.models.llama.batch import Row, TaskBatch
from blendfusion.models.llama.closed_set import ChoiceDecoder
from blendfusion.models.scores.expected_score import chains, expected_score, spread
from blendfusion.models.scores.option_trie import Fork, Scores, forks
from blendfusion.types import Answer


class ScaleDecoder:
    """Weighs the points of a scale, which are the options of a ``ChoiceDecoder``."""

    def __init__(self, asking: TaskBatch) -> None:
        self._asking = asking
        self._choosing = ChoiceDecoder(asking)
        self._root = self._choosing.root
        self.reserve = self._choosing.reserve

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        priors = dict(zip(forks(self._root), self._choosing.priors(rows), strict=True))
        seen: list[dict[Fork, Scores]] = [{} for _ in rows]
        *ways, last = chains(self._root)
        for way in ways:
            self._follow(rows, way, priors, seen, lambda _: None)

        def settle(place: int) -> None:
            text = expected_score(spread(self._root, seen[place]), self._asking.task.constraint)
            self._asking.settle(rows[place], Answer(text))

        self._follow(rows, last, priors, seen, settle)

    def _follow(
        self,
        rows: Sequence[Row],
        way: Sequence[Fork],
        priors: dict[Fork, Scores],
        seen: list[dict[Fork, Scores]],
        ended: Callable[[int], None],
    ) -> None:
        """Note the scores of all rows at the forks of a chain."""
        first, *others = way
        following = [iter(others) for _ in rows]
        at = [first] * len(rows)

        def step(place: int, logits: Any) -> Sequence[int]:
            fork = at[place]
            seen[place][fork] = fork.scores(logits, priors[fork])
            below = next(following[place], None)
            if below is None:
                ended(place)
                return ()
            at[place] = below
            return below.path[len(fork.path) :]

        self._asking.run([(*row, *first.path) for row in rows], step, self.reserve, exact=True)
