"""``llm_bool``: a yes/no question about a row."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import (
    CALIBRATED,
    CASCADE,
    CONFIDENCE,
    CONSISTENCY,
    EXAMPLES,
    MODEL,
    ON_ERROR,
    REASONING,
    REASONS,
    REVIEW,
    SAMPLE,
    THRESHOLD,
)

LLM_BOOL = Ingredient(
    name="llm_bool",
    summary="a yes/no question about a row",
    example="SELECT text, llm_bool('Would the customer buy it again?', text) AS again FROM reviews LIMIT 5",
    options=(
        EXAMPLES,
        SAMPLE,
        CONSISTENCY,
        CONFIDENCE,
        THRESHOLD,
        CALIBRATED,
        REVIEW,
        REASONING,
        REASONS,
        MODEL,
        *CASCADE,
        ON_ERROR,
    ),
    returns=Constraint("boolean"),
    result="BOOLEAN",
    doc="""The answer to ``question`` for each row, as BOOLEAN.""",
)
