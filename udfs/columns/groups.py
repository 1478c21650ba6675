"""Groups texts by meaning: the model names clusters of vectors from samples, and sorts each text
into a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from blendfusion.models.embedders.cache import UnknownVectorError
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.udfs.columns.clusters import clusters, nearest_first
from blendfusion.udfs.columns.group_store import OTHER, Group, Groups
from blendfusion.udfs.text.tfidf import normalized

MOST_GROUPS = 20
"""Clusters of a column without a number of its own: models choose worse among more options."""

_SAMPLES = 8
"""Texts of a cluster by which the model names it."""
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

    def chosen(self, texts: Sequence[str], groups: Sequence[Group]) -> Sequence[str | None]:
        """The name of the group that fits each text, ``other`` if none does; None without an
        answer."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """New groups, the number of clusters that they come from, and whether the model named each."""

    groups: tuple[Group, ...]
    clusters: int
    complete: bool


def found_groups(texts: Sequence[str], into: int | None, embedder: Embedder, namer: Namer) -> Found:
    """The groups of ``texts``, which are distinct and in ascending order, so that groups do not
    depend on the order of rows. Equal names are one group, of the samples of its first cluster."""
    k = min(len(texts), into or round(max(2.0, min(MOST_GROUPS, (len(texts) / 2) ** 0.5))))
    samples = _samples(texts, k, embedder)
    given = namer.names(list(map(_listed, samples)))
    found: dict[str, Group] = {}
    for answer, own in zip(given, samples, strict=True):
        name = " ".join((answer or "").split()).strip(" .\"'")
        if normalized(name) not in ("", OTHER):
            found.setdefault(normalized(name), Group(name, name, samples=tuple(own)))
    described = _described(sorted(found.values(), key=lambda group: group.name), namer)
    return Found(described, len(samples), None not in given)


def _described(groups: Sequence[Group], namer: Namer) -> tuple[Group, ...]:
    """The groups with their descriptions, where some are wanted."""
    given = namer.descriptions([_listed(group.samples) for group in groups])
    texts = [" ".join((answer or "").split()) for answer in given]
    return tuple(replace(g, description=t) for g, t in zip(groups, texts, strict=True))


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def with_level(groups: Groups, embedder: Embedder, namer: Namer) -> tuple[Groups, bool]:
    """(``groups`` with one more level, the groups of their highest level's names; whether the model
    named and sorted all)"""
    highest = groups.levels[-1]
    names = [group.name for group in highest]
    found = found_groups(names, None, embedder, namer)
    parents = sorted_into(names, found.groups, namer)
    children = tuple(replace(g, parent=p) for g, p in zip(highest, parents, strict=True))
    levels = (*groups.levels[:-1], children, found.groups)
    return replace(groups, levels=levels), found.complete and None not in parents


def sorted_into(
    texts: Sequence[str], groups: Sequence[Group], namer: Namer
) -> Sequence[str | None]:
    """The name of the group that fits each text, or ``other``; None without an answer."""
    return namer.chosen(texts, groups) if groups else [None] * len(texts)


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
