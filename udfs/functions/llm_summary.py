"""``llm_summary``: a summary of a row's list of texts."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import ListQuestion
from blendfusion.udfs.declare.options import CRITERION, MODEL, ON_ERROR

LLM_SUMMARY = Ingredient(
    name="llm_summary",
    summary="a summary of a row's list of texts, or of a text",
    example="SELECT product_id, llm_summary(array_agg(text)) AS opinion FROM reviews GROUP BY product_id",
    kind=ListQuestion(),
    leading=(),
    values=("value",),
    options=(CRITERION, MODEL, ON_ERROR),
    question="Summarize the main points.",
    returns=Constraint("text"),
    form="summary",
    result="TEXT",
    doc="""A summary of all items of a list, or of a text, as TEXT.""",
)
