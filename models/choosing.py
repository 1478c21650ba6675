"""Answers from a closed set: the option whose scores are best where options part, less a prior.

Nothing is generated. A row goes down the tree of the options (``options_tree``), fork by fork; the
prior of every fork (``calibrate``) is computed once a task. Where all options part, they may be scored
by several words each (``wordings``), yes and no also by those of the idea that the question asks for
(``asked_idea``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from blendfusion.models import calibrate
from blendfusion.models.asked_idea import asked_idea
from blendfusion.models.asking import Asking, Row, Runs
from blendfusion.models.constraint import closed_set
from blendfusion.models.opened import REMEMBERED_TASKS, Prior
from blendfusion.models.options_tree import Fork, Scores, Words, build, forks
from blendfusion.models.related_words import Idea
from blendfusion.models.wordings import related_words_of, words_of
from blendfusion.types import Answer

RELATED_EXPONENT = 0.25
"""Between the likeliest of related words and all of them alike (``Words``): docs/answers.md."""


class Choosing:
    """Chooses among two or more replies."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._options = closed_set(asking.task.constraint) or ()
        self._idea = asked_idea(asking.task) if asking.options.wordings else None
        self.root = _tree(asking, self._idea)
        if len(self.root.readings) < 2:
            self._idea = None
        self.reserve = max(len(fork.path) for fork in forks(self.root))

    def decide(self, rows: Sequence[Row]) -> None:
        """Settle all rows."""
        found = self.priors(rows)
        priors = dict(zip(forks(self.root), found, strict=True))
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
            if scores[order[0]] - scores[order[1]] < noise * sum(fork.weights):
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
        """The prior of every fork, in the order of ``forks``; ``root`` weighs its readings from here on."""
        options, opened = self._asking.options, self._asking.opened
        if options.calibration == "none" or self._asking.task.images:
            self.root = self.root.weighing((1.0,))
            return [np.zeros(len(fork.tokens)) for fork in forks(self.root)]
        key = (self._asking.task, options.shots, options.wordings)
        remembered = opened.priors
        if key not in remembered:
            if len(remembered) >= REMEMBERED_TASKS:
                remembered.pop(next(iter(remembered)))
            remembered[key] = self._task_priors()
        weights, found = remembered[key]
        self.root = self.root.weighing(weights)
        if options.calibration == "column":
            scores = self.scores([(row, self.root) for row in rows])
            return [calibrate.of_column(scores, found[0]), *found[1:]]
        return found

    def _task_priors(self) -> Prior:
        """The full prior where all options part; content-free inputs alone further down."""
        root, *below = forks(self.root)
        probes = [self._asking.row(values) for values in calibrate.probes(self._asking.task)]
        few = probes[: len(calibrate.CONTENT_FREE)]
        asked = [(row, root) for row in probes] + [(row, fork) for fork in below for row in few]
        parts = self._parts(asked)
        at_root = parts[: len(probes)]
        weights = calibrate.weights(at_root, self._idea) if self._idea else (1.0,)
        scores = [root.weighing(weights).weighed(part) for part in at_root]
        found = [calibrate.of_idea(scores, self._idea) if self._idea else calibrate.prior(scores)]
        for start in range(len(probes), len(parts), len(few)):
            fork = asked[start][1]
            found.append(
                calibrate.mean([fork.weighed(part) for part in parts[start : start + len(few)]])
            )
        return weights, found

    def scores(self, asked: Sequence[tuple[Row, Fork]]) -> list[Scores]:
        """The scores of rows at forks, without a prior."""
        parts = self._parts(asked)
        return [fork.weighed(part) for (_, fork), part in zip(asked, parts, strict=True)]

    def _parts(self, asked: Sequence[tuple[Row, Fork]]) -> list[Scores]:
        """The scores of rows by each reading of forks. What is batched here is always the same."""
        order = sorted(range(len(asked)), key=lambda place: asked[place][0] + asked[place][1].path)
        parts: list[Scores] = [np.empty((0, 0))] * len(asked)

        def step(row: int, logits: Any) -> Sequence[int]:
            parts[order[row]] = asked[order[row]][1].parts(logits)
            return ()

        rows = [(*asked[place][0], *asked[place][1].path) for place in order]
        self._asking.run(rows, step, 0)
        return parts


def _tree(asking: Asking, idea: Idea | None) -> Fork:
    """The forks of the replies that the prompt asks for."""
    context, layout = asking.context, asking.layout

    def tokens(word: str) -> list[int]:
        return context.tokenize(layout.lead + word, special=False)

    replies = [tokens(reply) for reply in layout.prompt.replies]
    end = context.tokenize(layout.stop, special=False)
    words: list[Words] = []
    if asking.options.wordings:
        own = [[first for first, *_ in map(tokens, said) if said] for said in words_of(asking.task)]
        related = related_words_of(asking.task) or [()] * len(own)
        said = [
            [*some, *_whole(map(tokens, more))] for some, more in zip(own, related, strict=True)
        ]
        words.append(Words(said, RELATED_EXPONENT if any(related) else 0.0))
    if idea is not None:
        sides = [[*_whole(map(tokens, side))] for side in (idea.words, idea.against)]
        words.append(Words(sides, RELATED_EXPONENT))
    return build(replies, end[0] if end else context.eos, *words)


def _whole(words: Iterable[Sequence[int]]) -> Iterator[int]:
    """The words that are one token: the first one of others may begin anything."""
    return (word[0] for word in words if len(word) == 1)
