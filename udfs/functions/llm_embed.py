"""``llm_embed``: a text as a vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from blendfusion.models.embedders.embedder import Embedder
from blendfusion.types import Constraint
from blendfusion.udfs.ask.embed_columns import Texts, vectors_of
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import Vectors

VECTOR = pa.list_(pa.float32())
"""Not of fixed size: such a list does not survive the way through Substrait."""


def _embed(columns: Sequence[Texts], embedder: Embedder) -> pa.Array:
    vectors, rows = vectors_of(columns[0], embedder)
    present = rows >= 0
    ends = np.cumsum(np.where(present, vectors.shape[1], 0))
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.ListArray.from_arrays(
        offsets, vectors[rows[present]].ravel(), type=VECTOR, mask=pa.array(~present)
    )


LLM_EMBED = Ingredient(
    name="llm_embed",
    summary="none (embedder): the vector of a text",
    example="SELECT review_id, llm_embed(text) AS vector FROM reviews LIMIT 5",
    kind=Vectors(_embed, VECTOR),
    leading=(),
    values=("text",),
    returns=Constraint("list", item=Constraint("number")),
    result="LIST of FLOAT",
    doc="""The vector of ``text`` by the session's embedder, as LIST of FLOAT. Vectors have length
one, so that the inner product of two is their cosine.""",
)
