"""Vectors of texts, one row per text."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]
"""Vectors of texts, one row per text."""


def normalised(vectors: npt.NDArray[np.floating]) -> Vectors:
    """The rows scaled to length one; zero rows stay unchanged.

    >>> normalised(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
