"""``llm_validate``: whether the rows of a group support a claim."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import GroupQuestion
from blendfusion.udfs.declare.options import (
    CLAIM,
    CONFIDENCE,
    CONSISTENCY,
    EXAMPLES,
    MODEL,
    ON_ERROR,
    REASONING,
    REASONS,
    REVIEW,
)

LLM_VALIDATE = Ingredient(
    name="llm_validate",
    summary="whether a claim holds for a group",
    example="SELECT product_id, llm_validate('Most customers are satisfied', text) AS holds "
    "FROM reviews GROUP BY product_id",
    kind=GroupQuestion(),
    leading=(CLAIM,),
    options=(EXAMPLES, CONSISTENCY, CONFIDENCE, REVIEW, REASONING, REASONS, MODEL, ON_ERROR),
    returns=Constraint("boolean"),
    form="statement",
    result="BOOLEAN",
    doc="""Whether the rows of a group support ``claim``, as BOOLEAN.""",
)
