"""``llm_date``: a date from a row."""

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

LLM_DATE = Ingredient(
    name="llm_date",
    summary="a date from a row",
    example="SELECT body, llm_date('When did the customer order?', opened_on, body) AS ordered FROM tickets LIMIT 5",
    options=(EXAMPLES, CONSISTENCY, EVIDENCE, CHECK, RETRIES, REASONING, REASONS, MODEL, ON_ERROR),
    returns=Constraint("date"),
    reads=True,
    result="DATE",
    doc="""The answer to ``question`` for each row, as DATE. The date is read from the text: one that
a single value does not state is NULL, unless ``evidence => false``.""",
)
