"""A closed set of replies as a tree of tokens: where they part, a model's scores decide.

Options that differ in their first token are decided in one place; options that share tokens are
decided where they part, one place after another, so that ``New York`` and ``New Jersey`` compete
together against ``Texas`` and then with each other. Where one option begins another, its end
token competes with the longer one's next.

An option may be scored by other words than its own (``correct`` beside Yes) at no cost: their first tokens
are scored in the same place, and the mean counts. A word whose beginning tells nothing, since other
options begin so too, is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Fork:
    """A place where options part. ``path``: the tokens that lead here from the reply's start.

    ``next`` holds, for each of ``tokens``, a fork or the index of the option that it decides;
    ``words``, for each of ``tokens``, the first tokens of the words that are scored in its stead; () if
    it is scored itself.
    """

    path: tuple[int, ...]
    tokens: tuple[int, ...]
    next: tuple[Fork | int, ...]
    words: tuple[tuple[int, ...], ...] = ()
    _scored: NDArray[np.intp] = field(init=False, repr=False, compare=False)
    """The tokens that are scored, those of a branch together."""
    _starts: NDArray[np.intp] = field(init=False, repr=False, compare=False)
    _counts: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = self.words or ((),) * len(self.tokens)
        said = [some or (own,) for own, some in zip(self.tokens, words, strict=True)]
        counts = np.array([len(some) for some in said])
        object.__setattr__(self, "_scored", np.array([token for some in said for token in some]))
        object.__setattr__(self, "_starts", np.cumsum(counts) - counts)
        object.__setattr__(self, "_counts", counts.astype(np.float64))

    def scores(self, logits: NDArray[np.float32], prior: Scores | float = 0.0) -> Scores:
        """Log probabilities of the branches, among the branches, with ``prior`` taken away."""
        each = logits[self._scored].astype(np.float64)
        return log_softmax(np.add.reduceat(each, self._starts) / self._counts - prior)


def build(options: Sequence[Sequence[int]], end: int, words: Sequence[Sequence[int]] = ()) -> Fork:
    """The tree of two or more distinct options, given as tokens; ``end`` ends a reply. ``words``: for
    each option, the first tokens of the words that it is scored by."""
    found = _grow([(*tokens, end) for tokens in options], list(range(len(options))), 0)
    assert isinstance(found, Fork)
    return _worded(found, words) if any(words) and not found.path else found


def forks(root: Fork) -> list[Fork]:
    """Every fork of the tree, parents first."""
    below = [child for branch in root.next if isinstance(branch, Fork) for child in forks(branch)]
    return [root, *below]


def log_softmax(scores: Scores) -> Scores:
    shifted = np.asarray(scores - scores.max(), dtype=np.float64)
    return np.asarray(shifted - math.log(np.exp(shifted).sum()), dtype=np.float64)


def _worded(root: Fork, words: Sequence[Sequence[int]]) -> Fork:
    """The root with the words of the options that are decided there."""
    said = [{*tokens} for tokens in words]
    kept: list[tuple[int, ...]] = []
    for own, branch in zip(root.tokens, root.next, strict=True):
        if isinstance(branch, Fork):
            kept.append(())
            continue
        others = {*root.tokens} - {own}
        others = others.union(*(told for option, told in enumerate(said) if option != branch))
        kept.append(tuple(sorted(said[branch] - others)))
    return Fork(root.path, root.tokens, root.next, tuple(kept))


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
