"""``llm_answer``: the answer to a question about a row's list of texts."""

from __future__ import annotations

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import ListQuestion
from blendfusion.udfs.declare.options import (
    CONFIDENCE,
    CONSISTENCY,
    EVIDENCE,
    EXAMPLES,
    MODEL,
    ON_ERROR,
    OPTIONS,
    REASONING,
    REASONS,
    REGEX,
    RETURN_TYPE,
)

LLM_ANSWER = Ingredient(
    name="llm_answer",
    summary="a question about a row's list of texts, or about a text, of any length",
    example="SELECT product_id, llm_answer('What breaks first?', array_agg(text)) AS part "
    "FROM reviews GROUP BY product_id",
    kind=ListQuestion(),
    values=("value",),
    options=(
        OPTIONS,
        REGEX,
        EXAMPLES,
        CONSISTENCY,
        CONFIDENCE,
        EVIDENCE,
        REASONING,
        REASONS,
        MODEL,
        ON_ERROR,
        RETURN_TYPE,
    ),
    result="the type that the query needs, else TEXT",
    doc="""The answer to ``question`` about all items of a list, or about a text: TEXT, or the type
in ``returns``. With ``evidence``, the struct also has ``item``, the place of the item that states
the answer, from 1; its offsets are in that item.""",
)
