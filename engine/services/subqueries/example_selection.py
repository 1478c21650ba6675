"""Selects worked examples from labelled rows: few, typical, and of every label.

Small models learn the form of an answer and the line between labels from a handful of examples;
more cost tokens. So of each label those rows are taken that the label's other rows are most like:
each next one is the row that brings all of them nearest to one that was taken (greedy facility
location, within 1 - 1/e of the best choice: Nemhauser, Wolsey, Fisher 1978). A row that is like no
other is never first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

import numpy as np

from blendfusion.models.embedders.embedder import Vectors
from blendfusion.models.vectors.vector import products

EXAMPLES = 8
"""How many are picked, with at least one of every label."""
MOST_OF_A_LABEL = 512
"""Rows of a label that are compared with one another: the first, sorted; the choice hardly changes.
"""
_DECIMALS = 5
"""Digits that count: further ones depend on the machine."""


def pick(labels: Sequence[str], vectors: Vectors | None) -> list[int]:
    """The places of the examples, of one label after the other in turn; the same for any order of
    rows that are sorted. Without vectors the first of each label."""
    by_label: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        by_label.setdefault(label, []).append(place)
    each = -(-max(EXAMPLES, len(by_label)) // max(1, len(by_label)))
    turns = [
        places[:each]
        if vectors is None
        else list(_typical(places[:MOST_OF_A_LABEL], vectors, each))
        for _, places in sorted(by_label.items())
    ]
    in_turn = [p for p in chain.from_iterable(zip_longest(*turns)) if p is not None]
    return in_turn[: max(EXAMPLES, len(by_label))]


def _typical(places: Sequence[int], vectors: Vectors, count: int) -> Iterator[int]:
    own = vectors[list(places)].astype(np.float64)
    alike = np.round(products(own, own), _DECIMALS)
    reached = np.full(len(places), -1.0)
    left = list(range(len(places)))
    for _ in range(min(count, len(places))):
        gains = np.maximum(alike[left], reached).sum(axis=1)
        best = left.pop(int(np.argmax(np.round(gains, _DECIMALS))))
        reached = np.maximum(reached, alike[best])
        yield places[best]
