"""A closed set of replies as a tree of tokens, whose forks a model's scores decide.

Options that differ in their first token are decided at one fork. Options with a common prefix are
decided fork by fork, so that ``New York`` and ``New Jersey`` compete together against ``Texas`` and
then with each other. If one option is a prefix of another, its end token competes with the longer
one's next token.

Other words than its own may score an option (``correct`` beside Yes) at no cost: their first tokens
are scored at the same position. A word is left out if its first token also begins another option.
Several such readings of one position are added up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Words:
    """For each option, the first tokens of the words that score it. A score is the logarithm of the
    power mean of their probabilities. With an ``exponent`` of 1 the sum counts, so the likeliest
    word dominates; towards 0, the geometric mean, all words count alike."""

    tokens: Sequence[Sequence[int]]
    exponent: float = 0.0


class Reading:
    """The scoring of one fork's branches: each branch by some tokens (``Words``)."""

    def __init__(self, tokens: Sequence[Sequence[int]], exponent: float = 0.0) -> None:
        self.tokens = tuple(map(tuple, tokens))
        self._exponent = exponent
        counts = np.array([len(some) for some in tokens])
        self._scored = np.array([token for some in tokens for token in some])
        self._starts = np.cumsum(counts) - counts
        self._counts = counts

    def scores(self, logits: NDArray[np.float32]) -> Scores:
        """The scores of the branches, up to a constant."""
        each = logits[self._scored].astype(np.float64)
        if not self._exponent:
            return np.asarray(np.add.reduceat(each, self._starts) / self._counts)
        likeliest = np.maximum.reduceat(each, self._starts)
        powers = np.exp((each - likeliest.repeat(self._counts)) * self._exponent)
        means = np.add.reduceat(powers, self._starts) / self._counts
        return np.asarray(likeliest + np.log(means) / self._exponent)


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """A position where options diverge. ``path``: the tokens from the reply's start to it.

    ``next`` holds, for each of ``tokens``, a fork or the index of the option that it decides.
    ``readings`` score these branches, with ``weights``.
    """

    path: tuple[int, ...]
    tokens: tuple[int, ...]
    next: tuple[Fork | int, ...]
    readings: tuple[Reading, ...]
    weights: tuple[float, ...] = (1.0,)

    def parts(self, logits: NDArray[np.float32]) -> Scores:
        """The scores of the branches: one row per reading."""
        return np.stack([reading.scores(logits) for reading in self.readings])

    def weigh(self, parts: Scores, prior: Scores | float = 0.0) -> Scores:
        """Log probabilities of the branches, relative to one another, minus ``prior``."""
        return log_softmax(np.asarray(self.weights) @ parts - prior)

    def scores(self, logits: NDArray[np.float32], prior: Scores | float = 0.0) -> Scores:
        """``weigh`` of ``parts``."""
        return self.weigh(self.parts(logits), prior)

    def highest(self, scores: Scores) -> Scores:
        """The highest of the options' ``scores`` below each branch."""
        below = (
            branch.highest(scores).max() if isinstance(branch, Fork) else scores[branch]
            for branch in self.next
        )
        return np.array(list(below), dtype=np.float64)

    def weighing(self, weights: Sequence[float]) -> Fork:
        """This fork with these weights for its first readings, and without the other readings."""
        return replace(self, readings=self.readings[: len(weights)], weights=tuple(weights))


def build(options: Sequence[Sequence[int]], end: int, *words: Words) -> Fork:
    """The tree of two or more distinct options, given as tokens; ``end`` ends a reply. The first of
    ``words`` replaces the options' own tokens, the others are added."""
    found = _grow([(*tokens, end) for tokens in options], list(range(len(options))), 0)
    assert isinstance(found, Fork)
    return found if found.path else _with_words(found, words)


def forks(root: Fork) -> list[Fork]:
    """Every fork of the tree, parents first."""
    below = [child for branch in root.next if isinstance(branch, Fork) for child in forks(branch)]
    return [root, *below]


def log_softmax(scores: Scores) -> Scores:
    shifted = np.asarray(scores - scores.max(), dtype=np.float64)
    return np.asarray(shifted - math.log(np.exp(shifted).sum()), dtype=np.float64)


def _with_words(root: Fork, words: Sequence[Words]) -> Fork:
    """The root with the words of the options that it decides. The first words replace an option
    unless none of them is distinctive; the others count only if they are distinctive for all
    options."""
    readings = list(root.readings)
    for place, some in enumerate(words):
        telling = _telling(root, some.tokens)
        if place == 0:
            own = [found or [token] for found, token in zip(telling, root.tokens, strict=True)]
            readings = [Reading(own, some.exponent)]
        elif all(telling):
            readings.append(Reading(telling, some.exponent))
    return replace(root, readings=tuple(readings), weights=(1.0,) * len(readings))


def _telling(root: Fork, words: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each branch, the tokens that no other option begins with or has among its words."""
    if not words:
        return [[] for _ in root.tokens]
    begins = {*root.tokens}
    options = Counter(token for tokens in words for token in {*tokens})
    kept: list[list[int]] = []
    for own, branch in zip(root.tokens, root.next, strict=True):
        candidates = set() if isinstance(branch, Fork) else {*words[branch]}
        kept.append(
            sorted(t for t in candidates if options[t] == 1 and (t == own or t not in begins))
        )
    return kept


def _grow(options: list[tuple[int, ...]], members: list[int], depth: int) -> Fork | int:
    if len(members) == 1:
        return members[0]
    while len({options[member][depth] for member in members}) == 1:
        depth += 1
    branches: dict[int, list[int]] = {}
    for member in members:
        branches.setdefault(options[member][depth], []).append(member)
    return Fork(
        path=options[members[0]][:depth],
        tokens=tuple(branches),
        next=tuple(_grow(options, branch, depth + 1) for branch in branches.values()),
        readings=(Reading([(token,) for token in branches]),),
    )
