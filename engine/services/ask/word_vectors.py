"""Compares words by the vectors of the packaged embedder, so that *staff* finds ``employees``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from blendfusion.errors import ModelNotFound
from blendfusion.models.vectors.vector import products

if TYPE_CHECKING:
    from blendfusion.models.vectors.wordllama import WordLlamaEmbedder


def similarities(words: Sequence[str], names: Sequence[str]) -> npt.NDArray[np.float32] | None:
    """The cosine of each word (row) and each name (column); None if there is no word or no name, or
    if the package wordllama is not installed. Nothing leaves the machine."""
    embedder = _embedder() if words and names else None
    if embedder is None:
        return None
    found: npt.NDArray[np.float32] = products(embedder.embed(words), embedder.embed(names))
    return found


@cache
def _embedder() -> WordLlamaEmbedder | None:
    from blendfusion.models.vectors.wordllama import WordLlamaEmbedder

    try:
        return WordLlamaEmbedder()
    except ModelNotFound:
        return None
