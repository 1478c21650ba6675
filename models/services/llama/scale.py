"""The probabilities of all options of a closed set, and scores as their expected value.

Rows go exactly: where other rows change every score a little, there is no tie to tell where
that matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp
from typing import Any

from blendfusion.models.scores.distribution import distribution_text
from blendfusion.models.services.llama.batch import Row, TaskBatch
from blendfusion.models.services.llama.closed_set import ChoiceDecoder
from blendfusion.models.services.verbalizer.expected_score import chains, expected_score, spread
from blendfusion.models.services.verbalizer.option_trie import Fork, Scores, forks
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.types import Answer


class ScaleDecoder:
    """Weighs the points of a scale, or the options of a closed set, which are those of a
    ``ChoiceDecoder``."""

    def __init__(self, asking: TaskBatch, way: Way | None = None) -> None:
        self._asking = asking
        self._choosing = ChoiceDecoder(asking, way)
        self._root = self._choosing.root
        self.reserve = self._choosing.reserve

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        priors = dict(zip(forks(self._root), self._choosing.priors(rows), strict=True))
        seen: list[dict[Fork, Scores]] = [{} for _ in rows]
        constraint = self._asking.task.constraint
        similar = self._choosing.similar(rows)

        def settle(place: int) -> None:
            logprobs = spread(self._root, seen[place])
            if constraint.distribution:
                text = distribution_text([exp(logprobs[at]) for at in sorted(logprobs)], constraint)
            else:
                text = expected_score(logprobs, constraint)
            self._asking.settle(rows[place], Answer(text))

        def scores(place: int, fork: Fork, logits: Any) -> Scores:
            more = 0.0 if similar is None else fork.highest(similar[place])
            return fork.scores(logits, priors[fork] - more)

        *ways, last = chains(self._root)
        for way in ways:
            self._follow(rows, way, scores, seen, lambda _: None)
        self._follow(rows, last, scores, seen, settle)

    def _follow(
        self,
        rows: Sequence[Row],
        way: Sequence[Fork],
        scores: Callable[[int, Fork, Any], Scores],
        seen: list[dict[Fork, Scores]],
        ended: Callable[[int], None],
    ) -> None:
        """Note the scores of all rows at the forks of a chain."""
        first, *others = way
        following = [iter(others) for _ in rows]
        at = [first] * len(rows)

        def step(place: int, logits: Any) -> Sequence[int]:
            fork = at[place]
            seen[place][fork] = scores(place, fork, logits)
            below = next(following[place], None)
            if below is None:
                ended(place)
                return ()
            at[place] = below
            return below.path[len(fork.path) :]

        self._asking.run([(*row, *first.path) for row in rows], step, self.reserve, exact=True)
