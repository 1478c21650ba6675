"""``llm_filter``: a yes/no question about a row."""

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

LLM_FILTER = Ingredient(
    name="llm_filter",
    summary="a yes/no question about a row",
    example="SELECT text FROM reviews WHERE stars <= 2 AND llm_filter('Did something break?', text)",
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
    doc="""Whether the answer to ``question`` is yes, as BOOLEAN.""",
)
