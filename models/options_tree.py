"""A closed set of replies as a tree of tokens: where they part, a model's scores decide.

Options that differ in their first token are decided in one place; options that share tokens are
decided where they part, one place after another, so that ``New York`` and ``New Jersey`` compete
together against ``Texas`` and then with each other. Where one option begins another, its end
token competes with the longer one's next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Fork:
    """A place where options part. ``path``: the tokens that lead here from the reply's start.

    ``next`` holds, for each of ``tokens``, a fork or the index of the option that it decides.
    """

    path: tuple[int, ...]
    tokens: tuple[int, ...]
    next: tuple[Fork | int, ...]

    def scores(self, logits: NDArray[np.float32]) -> Scores:
        """Log probabilities of the branches, among the branches."""
        return log_softmax(logits[list(self.tokens)].astype(np.float64))


def build(options: Sequence[Sequence[int]], end: int) -> Fork:
    """The tree of two or more distinct options, given as tokens; ``end`` ends a reply."""
    found = _grow([(*tokens, end) for tokens in options], list(range(len(options))), 0)
    assert isinstance(found, Fork)
    return found


def forks(root: Fork) -> list[Fork]:
    """Every fork of the tree, parents first."""
    below = [child for branch in root.next if isinstance(branch, Fork) for child in forks(branch)]
    return [root, *below]


def log_softmax(scores: Scores) -> Scores:
    shifted = np.asarray(scores - scores.max(), dtype=np.float64)
    return np.asarray(shifted - np.log(np.exp(shifted).sum()), dtype=np.float64)


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
    )
