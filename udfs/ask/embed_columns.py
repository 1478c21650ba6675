"""Embeds columns of texts, each distinct text once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from blendfusion.models.embedders.embedder import Embedder, Vectors


class Texts(NamedTuple):
    """A column: its distinct texts, None for NULL, and the position of each row's among them."""

    distinct: Sequence[str | None]
    rows: npt.NDArray[np.int64]


_TEXTS_AT_ONCE = 16_384
_DECIMALS = 6
"""The precision of float32 vectors: further digits would depend on the order of additions."""


def cosines(column: Texts, other: Texts, embedder: Embedder) -> npt.NDArray[np.float64]:
    """How alike two columns' texts are, row by row, from -1 to 1; NaN where one is NULL or
    blank."""
    if len(column.distinct) < len(other.distinct):
        column, other = other, column
    # The fewer first: one of them may well be a literal, and all vectors of the other need not be
    # held.
    few, few_rows = vectors_of(other, embedder)
    found = np.full(len(column.rows), np.nan)
    for start in range(0, len(column.distinct), _TEXTS_AT_ONCE):
        part = range(start, min(start + _TEXTS_AT_ONCE, len(column.distinct)))
        rows = np.flatnonzero((column.rows >= part.start) & (column.rows < part.stop))
        own = Texts([column.distinct[i] for i in part], column.rows[rows] - start)
        many, many_rows = vectors_of(own, embedder)
        present = np.flatnonzero((many_rows >= 0) & (few_rows[rows] >= 0))
        for at in range(0, len(present), _TEXTS_AT_ONCE):
            chosen = present[at : at + _TEXTS_AT_ONCE]
            left, right = many[many_rows[chosen]], few[few_rows[rows[chosen]]]
            found[rows[chosen]] = np.einsum("ij,ij->i", left, right)
    return np.clip(np.round(found, _DECIMALS), -1, 1)


def vectors_of(column: Texts, embedder: Embedder) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """(one vector a distinct text, the position of each row's vector): -1 for NULL and blank
    rows."""
    place = np.full(len(column.distinct), -1, dtype=np.int64)
    embedded: list[str] = []
    for i, text in enumerate(column.distinct):
        if text is not None and text.strip():
            place[i] = len(embedded)
            embedded.append(text)
    return embedder.embed(embedded), place[column.rows]
