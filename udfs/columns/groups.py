"""Groups texts by meaning: the model names clusters of vectors from samples, and sorts each text
into a name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from blendfusion.models.embedders.cache import UnknownVectorError
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.udfs.columns.clusters import clusters, nearest_first
from blendfusion.udfs.text.tfidf import normalized

OTHER = "other"
"""The group of the texts that fit no name."""

MOST_GROUPS = 20
"""Clusters of a column without a number of its own: models choose worse among more options."""

_SAMPLES = 8
"""Texts of a cluster by which the model names it."""
_SAMPLE_CHARACTERS = 300


class Namer(Protocol):
    """Asks the model for names, and which names fit."""

    def names(self, samples: Sequence[str]) -> Sequence[str | None]:
        """A name for each cluster of samples, one a line; None without an answer."""
        ...

    def chosen(self, texts: Sequence[str], names: Sequence[str]) -> Sequence[str | None]:
        """The name that fits each text; None without an answer."""
        ...


def groups(
    texts: Sequence[str], into: int | None, embedder: Embedder, namer: Namer
) -> tuple[Sequence[str | None], str]:
    """(the name of the group of each text, how they were found). ``texts`` are distinct and in
    ascending order, so that groups do not depend on the order of rows."""
    k = min(len(texts), into or round(max(2.0, min(MOST_GROUPS, (len(texts) / 2) ** 0.5))))
    samples = _samples(texts, k, embedder)
    found: dict[str, str] = {}
    for given in namer.names(samples):
        name = " ".join((given or "").split()).strip(" .\"'")
        if normalized(name) not in ("", OTHER):
            found.setdefault(normalized(name), name)
    names = sorted(found.values())
    chosen = namer.chosen(texts, [*names, OTHER]) if names else [None] * len(texts)
    others = sum(name == OTHER for name in chosen)
    how = (
        f"groups: {len(names):,} names of {len(samples):,} clusters; {others:,} of {len(texts):,} "
    )
    return chosen, f"{how}values fit none"


def _samples(texts: Sequence[str], k: int, embedder: Embedder) -> list[str]:
    """The samples of each cluster, one a line, those nearest to its centre."""
    try:
        vectors = embedder.embed(texts)
    except UnknownVectorError:  # an estimate does not embed
        return [json.dumps([text]) for text in texts[:k]]
    numbers = clusters(vectors, k)
    found = []
    for number in np.unique(numbers).tolist():
        places = np.flatnonzero(numbers == number)
        near = places[nearest_first(vectors[places])[:_SAMPLES]]
        lines = (" ".join(texts[place].split())[:_SAMPLE_CHARACTERS] for place in near.tolist())
        found.append("\n".join(f"- {line}" for line in lines))
    return found
