"""Scores of an idea by a yes/no question (``score_as_yes_no``): the probability of yes, on the
scale.

Rows go exactly, as in ``scoring``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

from blendfusion.models.services.llama.batch import Row, TaskBatch
from blendfusion.models.services.llama.closed_set import ChoiceDecoder
from blendfusion.models.services.verbalizer.query_likelihood import degree_of
from blendfusion.types import Constraint

YES = 0
"""The place of yes among the answers."""


class BinaryScaleDecoder:
    """Tells how probable a yes is. ``constraint``: the score's."""

    def __init__(self, asking: TaskBatch, constraint: Constraint) -> None:
        self._asking = asking
        self._constraint = constraint
        self._choosing = ChoiceDecoder(asking)
        self.reserve = self._choosing.reserve

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        prior, *_ = self._choosing.priors(rows)
        root = self._choosing.root
        yes = root.next.index(YES)

        def step(place: int, logits: Any) -> Sequence[int]:
            share = exp(root.scores(logits, prior)[yes])
            self._asking.settle(rows[place], degree_of(share, self._constraint))
            return ()

        self._asking.run(rows, step, 0, exact=True)
