"""``llm_similarity``: the similarity of two texts in meaning, by their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from datafusion import Expr

from blendfusion.models.embedders.embedder import Embedder
from blendfusion.types import Constraint
from blendfusion.udfs.ask.embed_columns import Texts, cosines
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, expression


def _similarity(columns: Sequence[Texts], embedder: Embedder) -> pa.Array:
    left, right = columns
    # from_pandas: NaN is NULL.
    return pa.array(cosines(left, right, embedder), pa.float64(), from_pandas=True)


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
    """The similarity of ``a`` and ``b`` in meaning, from -1 to 1: the cosine of their vectors, as
    DOUBLE.

    Each is a column (or its name) or a literal, ``lit("gravel bikes")``. NULL if either is NULL or
    blank. Each distinct text is embedded once, by the session's embedder; no language model is
    asked.
    """
    return expression(LLM_SIMILARITY, (a, b))
