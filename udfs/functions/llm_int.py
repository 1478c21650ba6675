"""``llm_int``: a whole number from a row."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import (
    CHECK,
    CONSISTENCY,
    EVIDENCE,
    EXAMPLES,
    MODEL,
    ON_ERROR,
    REASONING,
    REASONS,
    RETRIES,
)

LLM_INT = Ingredient(
    name="llm_int",
    summary="a whole number from a row",
    example="SELECT text, llm_int('How many days did it take?', text) AS days FROM reviews WHERE text LIKE '% days%'",
    options=(EXAMPLES, CONSISTENCY, EVIDENCE, CHECK, RETRIES, REASONING, REASONS, MODEL, ON_ERROR),
    returns=Constraint("integer"),
    result="BIGINT",
    doc="""The answer to ``question`` for each row, as BIGINT.""",
)
