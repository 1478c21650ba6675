"""Answers from a closed set: the option with the best scores at each fork, minus a prior.

Nothing is generated. A row goes down the tree of the options (``options_tree``), fork by fork; the
prior of every fork (``calibrate``) is computed once a task. Where all options part, they may be
scored by several words each (``verbalize``), yes and no also by those of the idea that the question
asks for. Where labels are little known, the similarity of label and text counts as well
(``label_similarity``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from blendfusion.models.constraints.constraint import closed_set
from blendfusion.models.services.llama.batch import Row, Runs, TaskBatch
from blendfusion.models.services.llama.model_cache import TaskState
from blendfusion.models.services.prompts.examples import shows_examples
from blendfusion.models.services.verbalizer import calibration as calibrate
from blendfusion.models.services.verbalizer.label_similarity import label_similarities, label_weight
from blendfusion.models.services.verbalizer.option_trie import Fork, Scores, Words, build, forks
from blendfusion.models.services.verbalizer.verbalize import Verbalization, verbalize
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.types import Answer

RELATED_EXPONENT = 0.25
"""Between the likeliest of related words and all of them alike (``Words``): benchmarks/lab.md."""


class ChoiceDecoder:
    """Chooses among two or more replies."""

    def __init__(self, asking: TaskBatch, way: Way | None = None) -> None:
        self._asking = asking
        self._label_weight = label_weight(asking.task, asking.options, way)
        self._options = closed_set(asking.task.constraint) or ()
        key = (asking.task, shows_examples(asking.options.shots), asking.options.wordings)
        self._known = asking.opened.state_of(key, lambda: _new_state(asking))
        self.root = self._known.root
        self.reserve = max(len(fork.path) for fork in forks(self.root))

    def decide(self, rows: Sequence[Row]) -> None:
        """Choose an option for each row."""
        found = self.priors(rows)
        priors = dict(zip(forks(self.root), found, strict=True))
        self._asking.decide(rows, partial(self._descend, priors))

    def _descend(
        self, priors: dict[Fork, Scores], rows: Sequence[Row], run: Runs, noise: float
    ) -> list[Row]:
        """Settle the rows; those at which some fork was nearer to a tie than ``noise`` are
        returned."""
        at = [self.root] * len(rows)
        similar = self.similar(rows)
        logprobs = [0.0] * len(rows)
        ties: set[int] = set()

        def step(row: int, logits: Any) -> Sequence[int]:
            fork = at[row]
            prior = priors[fork]
            if similar is not None:
                prior = prior - fork.highest(similar[row])
            scores = fork.scores(logits, prior)
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

    def similar(self, rows: Sequence[Row]) -> Scores | None:
        """The addends to the scores of the options by the similarity of each text, a row a text;
        None if similarity has no effect."""
        if not self._label_weight:
            return None
        asking = self._asking
        texts = [asking.context.text(row[: -len(asking.tail)]).strip() for row in rows]
        return self._label_weight * np.array(label_similarities(asking.task, texts))

    def priors(self, rows: Sequence[Row]) -> list[Scores]:
        """The prior of every fork, in the order of ``forks``; ``root`` weighs its readings from
        here on."""
        calibration, known = self._asking.options.calibration, self._known
        if calibration == "none" or self._asking.task.images:
            self.root = known.root.weighing((1.0,))
            return [np.zeros(len(fork.tokens)) for fork in forks(self.root)]
        if known.priors is None:
            known.root, known.priors = self._task_priors()
        self.root = known.root
        if calibration == "column" and not self._asking.task.sample:
            scores = self.scores([(row, self.root) for row in rows])
            return [calibrate.of_column(scores, known.priors[0]), *known.priors[1:]]
        return known.priors

    def _task_priors(self) -> tuple[Fork, list[Scores]]:
        """The root as its readings weigh, and the priors: the full one where all options part; of
        content-free inputs alone further down. The sample moves the prior of the root."""
        root, *below = forks(self.root)
        idea = self._known.idea
        probes = [self._asking.row(values) for values in calibrate.probes(self._asking.task)]
        few = probes[: len(calibrate.CONTENT_FREE)]
        pairs = [(row, fork) for fork in below for row in few]
        parts = self._parts([(row, root) for row in probes] + pairs)
        at_root, further = parts[: len(probes)], parts[len(probes) :]
        if idea is not None:
            root = root.weighing(calibrate.weights(at_root, idea))
        scores = [root.weigh(part) for part in at_root]
        found = [calibrate.of_idea(scores, idea) if idea else calibrate.prior(scores)]
        scores = [fork.weigh(part) for (_, fork), part in zip(pairs, further, strict=True)]
        for start in range(0, len(scores), len(few)):
            found.append(calibrate.mean(scores[start : start + len(few)]))
        if sample := [(row, root) for row in self._asking.sample(self.reserve)]:
            found[0] = calibrate.of_column(self.scores(sample), found[0])
        return root, found

    def scores(self, pairs: Sequence[tuple[Row, Fork]]) -> list[Scores]:
        """The scores of rows at forks, without a prior."""
        parts = self._parts(pairs)
        return [fork.weigh(part) for (_, fork), part in zip(pairs, parts, strict=True)]

    def _parts(self, pairs: Sequence[tuple[Row, Fork]]) -> list[Scores]:
        """The scores of rows by each reading of forks. What is batched here is always the same."""
        order = sorted(range(len(pairs)), key=lambda place: pairs[place][0] + pairs[place][1].path)
        parts: list[Scores] = [np.empty((0, 0))] * len(pairs)

        def step(row: int, logits: Any) -> Sequence[int]:
            parts[order[row]] = pairs[order[row]][1].parts(logits)
            return ()

        rows = [(*pairs[place][0], *pairs[place][1].path) for place in order]
        self._asking.run(rows, step, 0)
        return parts


def _new_state(asking: TaskBatch) -> TaskState:
    """The forks of the replies that the prompt asks for, and the idea whose words score yes and
    no."""
    words = verbalize(asking.task) if asking.options.wordings else None
    root = _tree(asking, words)
    return TaskState(root, words.idea if words and len(root.readings) > 1 else None)


def _tree(asking: TaskBatch, words: Verbalization | None) -> Fork:
    context, layout = asking.context, asking.layout

    def tokens(word: str) -> list[int]:
        return context.tokenize(layout.lead + word, special=False)

    replies = [tokens(reply) for reply in layout.prompt.replies]
    end = context.tokenize(layout.stop, special=False)
    readings: list[Words] = []
    if words is not None:
        both = [
            [*(first for first, *_ in map(tokens, own)), *_whole(map(tokens, related))]
            for own, related in zip(words.own, words.related, strict=True)
        ]
        readings.append(Words(both, RELATED_EXPONENT if any(words.related) else 0.0))
        if words.idea is not None:
            sides = (words.idea.words, words.idea.against)
            by_idea = [[*_whole(map(tokens, side))] for side in sides]
            readings.append(Words(by_idea, RELATED_EXPONENT))
    return build(replies, end[0] if end else context.eos, *readings)


def _whole(words: Iterable[Sequence[int]]) -> Iterator[int]:
    """The words that are one token: the first one of others may begin anything."""
    return (word[0] for word in words if len(word) == 1)
