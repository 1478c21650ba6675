"""The specification of the compiled attention, in NumPy."""

from __future__ import annotations

import numpy as np


def attention(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, visible: np.ndarray, scale: float
) -> np.ndarray:
    """The output of attention: for each query, the values that it sees, weighted by the softmax of
    its scaled products with their keys (Vaswani et al., "Attention Is All You Need", 2017).

    ``queries``: tokens × heads × dimensions; ``keys`` and ``values``: cells × their heads ×
    dimensions, each head for as many heads of queries; ``visible``: tokens × cells, of which every
    token sees one. Float64, shaped as ``queries``."""
    group = queries.shape[1] // keys.shape[1]
    keys, values = (np.repeat(held.astype(np.float64), group, axis=1) for held in (keys, values))
    scores = np.einsum("thd,chd->htc", queries.astype(np.float64), keys) * scale
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    taken: np.ndarray = np.einsum("htc,chd->thd", weights, values)
    return taken
