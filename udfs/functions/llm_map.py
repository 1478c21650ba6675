"""``llm_map``: the answer to a question about a row, of the type that the query needs."""

from __future__ import annotations

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import (
    CASCADE,
    CHECK,
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
    RETURN_TYPE,
    REVIEW,
    SAMPLE,
)

LLM_MAP = Ingredient(
    name="llm_map",
    summary="any question about a row",
    example="SELECT text FROM reviews WHERE llm_map('How many days did it take?', text) > 7",
    options=(
        OPTIONS,
        REGEX,
        EXAMPLES,
        SAMPLE,
        CONSISTENCY,
        CONFIDENCE,
        REVIEW,
        EVIDENCE,
        CHECK,
        RETRIES,
        REASONING,
        REASONS,
        MODEL,
        *CASCADE,
        ON_ERROR,
        RETURN_TYPE,
    ),
    result="the type that the query needs, else TEXT",
    doc="""The answer to ``question`` for each row: TEXT, or the type in ``returns``. In SQL the type
also follows from the place of the call: ``WHERE llm_map(…) > 3`` asks for whole numbers.""",
)
