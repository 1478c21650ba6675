"""Answers from a closed set: the option whose scores are best where options part, less a prior.

Nothing is generated. A row goes down the tree of the options (``options_tree``), fork by fork; the
prior of every fork (``calibrate``) is computed once a task. Where all options part, they may be scored
by several words each (``wordings``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blendfusion.models import calibrate
from blendfusion.models.asking import Asking, Row, Runs
from blendfusion.models.constraint import closed_set
from blendfusion.models.opened import REMEMBERED_TASKS
from blendfusion.models.options_tree import Fork, Scores, build, forks
from blendfusion.models.wordings import words_of
from blendfusion.types import Answer


class Choosing:
    """Chooses among two or more replies."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._options = closed_set(asking.task.constraint) or ()
        self.root = _tree(asking)
        self.reserve = max(len(fork.path) for fork in forks(self.root))

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        priors = dict(zip(forks(self.root), self.priors(rows), strict=True))
        near = self._descend(rows, priors, self._asking.run, self._asking.opened.noise)
        if near:
            self._descend(near, priors, self._asking.run_again, noise=0.0)

    def _descend(
        self, rows: Sequence[Row], priors: dict[Fork, Scores], run: Runs, noise: float
    ) -> list[Row]:
        """Settle the rows; those at which some fork was nearer to a tie than ``noise`` are returned."""
        at = [self.root] * len(rows)
        logprobs = [0.0] * len(rows)
        ties: set[int] = set()

        def step(row: int, logits: Any) -> Sequence[int]:
            fork = at[row]
            scores = fork.scores(logits, priors[fork])
            order = np.argsort(-scores, kind="stable")
            if scores[order[0]] - scores[order[1]] < noise:
                ties.add(row)
                return ()
            logprobs[row] += float(scores[order[0]])
            below = fork.next[int(order[0])]
            if isinstance(below, Fork):
                at[row] = below
                return below.path[len(fork.path) :]
            self._asking.settle(rows[row], Answer(self._options[below], logprob=logprobs[row]))
            return ()

        run(rows, step, self.reserve)
        return [rows[row] for row in sorted(ties)]

    def priors(self, rows: Sequence[Row]) -> list[Scores]:
        """The prior of every fork, in the order of ``forks``."""
        options, opened = self._asking.options, self._asking.opened
        if options.calibration == "none" or self._asking.task.images:
            return [np.zeros(len(fork.tokens)) for fork in forks(self.root)]
        key = (self._asking.task, options.shots, options.wordings)
        remembered = opened.priors
        if key not in remembered:
            if len(remembered) >= REMEMBERED_TASKS:
                remembered.pop(next(iter(remembered)))
            remembered[key] = self._task_priors()
        found = remembered[key]
        if options.calibration == "column":
            scores = self.scores([(row, self.root) for row in rows])
            return [calibrate.of_column(scores, found[0]), *found[1:]]
        return found

    def _task_priors(self) -> list[Scores]:
        """The full prior where all options part; content-free inputs alone further down."""
        root, *below = forks(self.root)
        probes = [self._asking.row(values) for values in calibrate.probes(self._asking.task)]
        few = probes[: len(calibrate.CONTENT_FREE)]
        scores = self.scores(
            [(row, root) for row in probes] + [(row, fork) for fork in below for row in few]
        )
        found = [calibrate.prior(scores[: len(probes)])]
        for start in range(len(probes), len(scores), len(few)):
            found.append(calibrate.mean(scores[start : start + len(few)]))
        return found

    def scores(self, asked: Sequence[tuple[Row, Fork]]) -> list[Scores]:
        """The scores of rows at forks. What is batched here is always the same."""
        order = sorted(range(len(asked)), key=lambda place: asked[place][0] + asked[place][1].path)
        scores: list[Scores] = [np.empty(0)] * len(asked)

        def step(row: int, logits: Any) -> Sequence[int]:
            scores[order[row]] = asked[order[row]][1].scores(logits)
            return ()

        rows = [(*asked[place][0], *asked[place][1].path) for place in order]
        self._asking.run(rows, step, 0)
        return scores


def _tree(asking: Asking) -> Fork:
    """The forks of the replies that the prompt asks for."""
    context, layout = asking.context, asking.layout
    replies = [
        context.tokenize(layout.lead + reply, special=False) for reply in layout.prompt.replies
    ]
    end = context.tokenize(layout.stop, special=False)
    words: list[list[int]] = []
    if asking.options.wordings:
        for said in words_of(asking.task):
            tokens = [context.tokenize(layout.lead + word, special=False) for word in said]
            words.append([first for first, *_ in filter(None, tokens)])
    return build(replies, end[0] if end else context.eos, words)
