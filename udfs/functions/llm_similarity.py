"""``llm_similarity``: the similarity of two texts in meaning, by their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from blendfusion.models.embedders.embedder import Embedder
from blendfusion.types import Constraint
from blendfusion.udfs.ask.embed_columns import Texts, cosines
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import Vectors


def _similarity(columns: Sequence[Texts], embedder: Embedder) -> pa.Array:
    left, right = columns
    # from_pandas: NaN is NULL.
    return pa.array(cosines(left, right, embedder), pa.float64(), from_pandas=True)


LLM_SIMILARITY = Ingredient(
    name="llm_similarity",
    summary="none (embedder): the similarity of two texts",
    example="SELECT text FROM reviews ORDER BY llm_similarity(text, 'It broke after a week') DESC LIMIT 3",
    kind=Vectors(_similarity, pa.float64()),
    leading=(),
    values=("a", "b"),
    returns=Constraint("number"),
    result="DOUBLE, -1 to 1",
    doc="""The similarity of ``a`` and ``b`` in meaning, from -1 to 1: the cosine of their vectors, as
DOUBLE. Each is a column (or its name) or a literal, ``lit("gravel bikes")``. Each distinct text is
embedded once.""",
)
