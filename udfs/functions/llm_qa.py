"""``llm_qa``: the answer to a question about the rows of a group."""

from __future__ import annotations

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import GroupQuestion
from blendfusion.udfs.declare.options import (
    CHECK,
    CONFIDENCE,
    CONSISTENCY,
    EXAMPLES,
    MODEL,
    ON_ERROR,
    OPTIONS,
    REASONING,
    REASONS,
    REGEX,
    RETRIES,
    RETURN_TYPE,
)

LLM_QA = Ingredient(
    name="llm_qa",
    summary="a question about all rows of a group",
    example="SELECT product_id, llm_qa('What do customers complain about?', text) AS "
    "complaint FROM reviews GROUP BY product_id",
    kind=GroupQuestion(),
    options=(
        OPTIONS,
        REGEX,
        EXAMPLES,
        CONSISTENCY,
        CONFIDENCE,
        CHECK,
        RETRIES,
        REASONING,
        REASONS,
        MODEL,
        ON_ERROR,
        RETURN_TYPE,
    ),
    result="the type that the query needs, else TEXT",
    doc="""The answer to ``question`` about the rows of a group: TEXT, or the type in ``returns``.""",
)
