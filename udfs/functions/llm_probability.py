"""``llm_probability``: how probable it is that the answer to a yes/no question is yes."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import (
    CALIBRATED,
    CONSISTENCY,
    EXAMPLES,
    MODEL,
    ON_ERROR,
    REASONING,
    SAMPLE,
)

LLM_PROBABILITY = Ingredient(
    name="llm_probability",
    summary="the probability of a yes",
    example="SELECT text FROM reviews ORDER BY llm_probability('Did something break?', text) DESC LIMIT 3",
    options=(EXAMPLES, SAMPLE, CONSISTENCY, CALIBRATED, REASONING, MODEL, ON_ERROR),
    returns=Constraint("boolean"),
    probability=True,
    result="DOUBLE, 0 to 1",
    doc="""The probability that the answer to ``question`` is yes, for each row, as DOUBLE from 0 to
1. It is the question of ``llm_filter`` and ``llm_bool``, and shares its answers with them. Whether
0.8 means that eight of ten such answers are right depends on the model and the wording:
``frame.evaluate`` measures it, and ``calibrated`` corrects it by labels.

A model without probabilities is refused: local models have them, servers that give logprobs, and
decision models.

Sort by it for the surest rows, or add it up for the number of rows to expect:
``frame.aggregate([], [f.sum(bf.llm_probability("Is it late?", "text"))])``. To
filter with another limit than one half, write ``llm_filter(…, threshold => 0.8)``.""",
)
