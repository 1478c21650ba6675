"""``llm_fix_grammar``: a text with correct spelling and grammar."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import CHECK, EXAMPLES, MODEL, ON_ERROR, RETRIES

LLM_FIX_GRAMMAR = Ingredient(
    name="llm_fix_grammar",
    summary="a text with correct spelling and grammar",
    example="SELECT llm_fix_grammar(body) AS corrected FROM tickets LIMIT 3",
    leading=(),
    values=("value",),
    options=(EXAMPLES, CHECK, RETRIES, MODEL, ON_ERROR),
    question="What is the text with correct spelling and grammar? Change nothing else.",
    returns=Constraint("text"),
    result="TEXT",
    doc="""``value`` with correct spelling and grammar, as TEXT.""",
)
