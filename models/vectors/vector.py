"""Vectors of texts, one row per text."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from blendfusion.errors import ModelFailed

Vectors: TypeAlias = npt.NDArray[np.float32]
"""Vectors of texts, one row per text."""

_Float = TypeVar("_Float", np.float32, np.float64)


def normalise(vectors: npt.NDArray[np.floating]) -> Vectors:
    """The rows scaled to length one; zero rows stay unchanged.

    >>> normalise(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def products(vectors: npt.NDArray[_Float], others: npt.NDArray[_Float]) -> npt.NDArray[_Float]:
    """The inner product of each row of ``vectors`` with each row of ``others``, or with the one
    vector that it is: their cosine, if both have length one.

    BLAS may compute with parts of its registers that hold no numbers of these, and then reports an
    invalid operation, of which NumPy would warn.

    >>> products(np.eye(2, dtype=np.float32), np.ones(2, dtype=np.float32)).tolist()
    [1.0, 1.0]
    """
    with np.errstate(invalid="ignore"):
        found: npt.NDArray[_Float] = vectors @ others.T
    return found


def vectors_from(embedder: str, given: object, texts: int) -> Vectors:
    """Converts the reply of an embedder to the vectors of ``texts`` texts. Raises ModelFailed
    unless it has one vector of finite numbers for each text."""
    problem = _fault_of(given, texts)
    if problem:
        raise ModelFailed(
            f"the embedder '{embedder}' gave {problem}",
            hint="Return one vector of finite numbers per text, all of one length.",
        )
    return np.asarray(given, dtype=np.float32)


def _fault_of(given: object, texts: int) -> str:
    """The fault of a reply that should be the vectors of ``texts`` texts; '' if it has none.

    >>> _fault_of(np.zeros((2, 3)), 1), _fault_of(np.array([[np.nan]]), 1)
    ('2 vectors for 1 text(s)', 'a vector with a number that is not finite')
    """
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return "no array of numbers, with one row per text"
    if array.ndim != 2 or not array.shape[1]:
        return f"an array of shape {array.shape} for {texts} texts"
    if len(array) != texts:
        return f"{len(array):,} vectors for {texts:,} text(s)"
    with np.errstate(over="ignore"):
        finite = np.isfinite(array.astype(np.float32)).all()
    return "" if finite else "a vector with a number that is not finite"
