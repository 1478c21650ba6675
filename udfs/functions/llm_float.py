"""``llm_float``: a number from a row."""

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

LLM_FLOAT = Ingredient(
    name="llm_float",
    summary="a number from a row",
    example="SELECT body, llm_float('Which amount of money does it name?', body) AS amount FROM tickets LIMIT 5",
    options=(EXAMPLES, CONSISTENCY, EVIDENCE, CHECK, RETRIES, REASONING, REASONS, MODEL, ON_ERROR),
    returns=Constraint("number"),
    result="DOUBLE",
    doc="""The answer to ``question`` for each row, as DOUBLE.""",
)
