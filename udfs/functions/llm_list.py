"""``llm_list``: a list of texts from a row."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import (
    CHECK,
    CONSISTENCY,
    EVIDENCE,
    EXAMPLES,
    LIST_TYPE,
    MODEL,
    ON_ERROR,
    OPTIONS,
    REASONING,
    REASONS,
    RETRIES,
)

LLM_LIST = Ingredient(
    name="llm_list",
    summary="several items in a row",
    example="SELECT llm_list('Which parts of the product are named?', text) AS parts FROM reviews LIMIT 5",
    options=(
        OPTIONS,
        EXAMPLES,
        CONSISTENCY,
        EVIDENCE,
        CHECK,
        RETRIES,
        REASONING,
        REASONS,
        MODEL,
        ON_ERROR,
        LIST_TYPE,
    ),
    returns=Constraint("list", item=Constraint("text")),
    result="LIST of TEXT",
    doc="""The answer to ``question`` for each row, as LIST of TEXT.""",
)
