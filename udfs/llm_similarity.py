"""``llm_similarity``: how alike two texts are in meaning, by their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from datafusion import Expr

from blendfusion.models.embed import Embedder
from blendfusion.types import Constraint
from blendfusion.udfs.expression import ColumnLike, expression
from blendfusion.udfs.ingredient import Ingredient
from blendfusion.udfs.vectors import Texts, vectors_of

_ROWS_AT_ONCE = 16_384
_DECIMALS = 6
"""What float32 vectors are good for: the rest would depend on the order of additions."""


def _similarity(columns: Sequence[Texts], embedder: Embedder) -> pa.Array:
    (left, left_rows), (right, right_rows) = (vectors_of(c, embedder) for c in columns)
    present = np.flatnonzero((left_rows >= 0) & (right_rows >= 0))
    cosines = np.zeros(len(left_rows))
    for start in range(0, len(present), _ROWS_AT_ONCE):
        rows = present[start : start + _ROWS_AT_ONCE]
        cosines[rows] = np.einsum("ij,ij->i", left[left_rows[rows]], right[right_rows[rows]])
    missing = np.ones(len(cosines), dtype=bool)
    missing[present] = False
    return pa.array(np.clip(np.round(cosines, _DECIMALS), -1, 1), pa.float64(), mask=missing)


LLM_SIMILARITY = Ingredient(
    name="llm_similarity",
    summary="the cosine of two texts' vectors",
    leading=(),
    returns=Constraint("number"),
    compute=_similarity,
    type=pa.float64(),
    value_types=(pa.string(), pa.string()),
)


def llm_similarity(a: ColumnLike, b: ColumnLike) -> Expr:
    """How alike ``a`` and ``b`` are in meaning, from -1 to 1: the cosine of their vectors, as DOUBLE.

    Each is a column (or its name) or a literal, ``lit("gravel bikes")``. NULL where either is NULL
    or blank. Each distinct text is embedded once, by the session's embedder; no language model is
    asked.
    """
    return expression(LLM_SIMILARITY, (a, b))
