"""``llm_summarize``: a summary of the rows of a group."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import GroupQuestion
from blendfusion.udfs.declare.options import CRITERION, MODEL, ON_ERROR

LLM_SUMMARIZE = Ingredient(
    name="llm_summarize",
    summary="a summary of a group",
    example="SELECT product_id, llm_summarize(text) AS opinion FROM reviews GROUP BY product_id",
    kind=GroupQuestion(),
    leading=(),
    options=(CRITERION, MODEL, ON_ERROR),
    question="Summarize the main points.",
    returns=Constraint("text"),
    form="summary",
    result="TEXT",
    doc="""A summary of the rows of a group, as TEXT.""",
)
