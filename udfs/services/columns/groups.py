"""Groups texts by meaning: the model names clusters of vectors from samples, and sorts each text
into a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Protocol

import numpy as np
import numpy.typing as npt

from blendfusion.models.embedders.cache import UnknownVectorError
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.models.vectors.tfidf import normalize
from blendfusion.models.vectors.vector import products
from blendfusion.udfs.services.columns.clusters import clusters, nearest_first
from blendfusion.udfs.services.columns.group_store import OTHER, Group, Groups

MOST_GROUPS = 20
"""Clusters of a column without a number of its own: models choose worse among more options."""

_SAMPLES = 8
"""Texts of a cluster by which the model names it."""

CLOSENESS = 15.0
"""The weight of cosines beside the log odds of the model's choice, by which groups of texts of our
own are nearest to their subjects (benchmarks/lab.md)."""
_DECIMALS = 4
"""Digits of their sums that count: further ones depend on the order of additions."""
_TEXTS_AT_ONCE = 1024
_SAMPLE_CHARACTERS = 300


class Namer(Protocol):
    """Asks the model for names and descriptions, and which names fit."""

    def names(self, samples: Sequence[str]) -> Sequence[str | None]:
        """A name for each cluster of samples, one a line; None without an answer."""
        ...

    def descriptions(self, samples: Sequence[str]) -> Sequence[str | None]:
        """A sentence on each cluster of samples; None without an answer or where no description is
        wanted."""
        ...

    def choose(
        self, texts: Sequence[str], groups: Sequence[Group]
    ) -> Sequence[tuple[str, float] | None]:
        """The name of the group that fits each text, ``other`` if none does, and its probability,
        which is 1 if it is not known; None without an answer."""
        ...


@dataclass(frozen=True, slots=True)
class FoundGroups:
    """New groups, the number of clusters that they come from, and whether the model named each."""

    groups: tuple[Group, ...]
    clusters: int
    complete: bool


def found_groups(
    texts: Sequence[str], into: int | None, embedder: Embedder, namer: Namer
) -> FoundGroups:
    """The groups of ``texts``, which are distinct and in ascending order, so that groups do not
    depend on the order of rows. Equal names are one group, of the samples of all its clusters."""
    k = min(len(texts), into or round(max(2.0, min(MOST_GROUPS, (len(texts) / 2) ** 0.5))))
    samples = _samples(texts, k, embedder)
    given = namer.names(list(map(_list_lines, samples)))
    found: dict[str, Group] = {}
    for answer, own in zip(given, samples, strict=True):
        name = " ".join((answer or "").split()).strip(" .\"'")
        if normalize(name) not in ("", OTHER):
            same = found.get(normalize(name), Group(name, name))
            found[normalize(name)] = replace(same, samples=(*same.samples, *own))
    described = _describe(sorted(found.values(), key=lambda group: group.name), namer)
    return FoundGroups(described, len(samples), None not in given)


def _describe(groups: Sequence[Group], namer: Namer) -> tuple[Group, ...]:
    """The groups with their descriptions, where some are wanted."""
    given = namer.descriptions([_list_lines(group.samples[:_SAMPLES]) for group in groups])
    texts = [" ".join((answer or "").split()) for answer in given]
    return tuple(replace(g, description=t) for g, t in zip(groups, texts, strict=True))


def _list_lines(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def with_level(groups: Groups, embedder: Embedder, namer: Namer) -> tuple[Groups, bool]:
    """(``groups`` with one more level, the groups of their highest level's names; whether the model
    named and sorted all)"""
    highest = groups.levels[-1]
    names = [group.name for group in highest]
    found = found_groups(names, None, embedder, namer)
    parents = sorted_into(names, found.groups, namer, embedder)
    children = tuple(replace(g, parent=p) for g, p in zip(highest, parents, strict=True))
    levels = (*groups.levels[:-1], children, found.groups)
    return replace(groups, levels=levels), found.complete and None not in parents


def sorted_into(
    texts: Sequence[str], groups: Sequence[Group], namer: Namer, embedder: Embedder | None
) -> Sequence[str | None]:
    """The name of the group of each text, or ``other``; None without an answer.

    A choice that is certain holds. Of others, the odds count beside how close the text is to the
    samples of each group, so a model that is unsure leaves a text in its cluster."""
    if not groups:
        return [None] * len(texts)
    chosen = namer.choose(texts, groups)
    found = [None if choice is None else choice[0] for choice in chosen]
    unsure = [at for at, choice in enumerate(chosen) if choice is not None and choice[1] < 1]
    if unsure and embedder is not None:
        names = [*(group.name for group in groups), OTHER]
        try:
            close = _closeness([texts[at] for at in unsure], groups, embedder)
        except UnknownVectorError:  # an estimate does not embed
            return found
        for at, row in zip(unsure, close, strict=True):
            name, probable = chosen[at] or (OTHER, 0.0)
            odds = np.zeros(len(names))
            odds[names.index(name)] = log(max(probable, 1e-9) * len(groups) / (1 - probable))
            found[at] = names[int(np.round(CLOSENESS * row + odds, _DECIMALS).argmax())]
    return found


def _closeness(
    texts: Sequence[str], groups: Sequence[Group], embedder: Embedder
) -> npt.NDArray[np.float64]:
    """The mean cosine of each text, a row each, with the nearest samples of each group; in the last
    column, for ``other``, the mean of its row."""
    samples = [embedder.embed(list(group.samples or (group.name,))) for group in groups]
    parts = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        vectors = embedder.embed(list(texts[start : start + _TEXTS_AT_ONCE]))
        near = [
            np.sort(products(vectors, own), axis=1)[:, -_SAMPLES:].mean(axis=1) for own in samples
        ]
        parts.append(np.stack([*near, np.mean(near, axis=0)], axis=1).astype(np.float64))
    return np.concatenate(parts)


def _samples(texts: Sequence[str], k: int, embedder: Embedder) -> list[list[str]]:
    """The samples of each cluster, those nearest to its centre."""
    try:
        vectors = embedder.embed(texts)
    except UnknownVectorError:  # an estimate does not embed
        return [[repr(text)] for text in texts[:k]]
    numbers = clusters(vectors, k)
    found = []
    for number in np.unique(numbers).tolist():
        places = np.flatnonzero(numbers == number)
        near = places[nearest_first(vectors[places])[:_SAMPLES]]
        found.append([" ".join(texts[i].split())[:_SAMPLE_CHARACTERS] for i in near.tolist()])
    return found
