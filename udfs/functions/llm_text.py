"""``llm_text``: a text about a row."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import (
    CHECK,
    CHOICE_CASCADE,
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
    RETRIES,
)

LLM_TEXT = Ingredient(
    name="llm_text",
    summary="free text about a row",
    example="SELECT llm_text('What should be improved?', text) AS advice FROM reviews WHERE stars <= 2",
    options=(
        OPTIONS,
        REGEX,
        EXAMPLES,
        CONSISTENCY,
        CONFIDENCE,
        EVIDENCE,
        CHECK,
        RETRIES,
        REASONING,
        REASONS,
        MODEL,
        *CHOICE_CASCADE,
        ON_ERROR,
    ),
    returns=Constraint("text"),
    result="TEXT",
    doc="""The answer to ``question`` for each row, as TEXT.""",
)
