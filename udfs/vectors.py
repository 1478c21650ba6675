"""Columns of texts as vectors: each distinct text is embedded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from blendfusion.models.embed import Embedder, Vectors


class Texts(NamedTuple):
    """A column: its distinct texts, None for NULL, and the position of each row's among them."""

    distinct: Sequence[str | None]
    rows: npt.NDArray[np.int64]


def vectors_of(column: Texts, embedder: Embedder) -> tuple[Vectors, npt.NDArray[np.int64]]:
    """(one vector a distinct text, the position of each row's vector): -1 for NULL and blank rows."""
    place = np.full(len(column.distinct), -1, dtype=np.int64)
    embedded: list[str] = []
    for i, text in enumerate(column.distinct):
        if text is not None and text.strip():
            place[i] = len(embedded)
            embedded.append(text)
    return embedder.embed(embedded), place[column.rows]
