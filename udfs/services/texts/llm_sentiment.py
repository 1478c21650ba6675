"""``llm_sentiment``: whether a text is positive or negative."""

from __future__ import annotations

from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import (
    CONFIDENCE,
    EXAMPLES,
    MODEL,
    ON_ERROR,
    REASONING,
    REASONS,
    REVIEW,
)

LLM_SENTIMENT = Ingredient(
    name="llm_sentiment",
    summary="whether a text is positive, neutral or negative",
    example="SELECT llm_sentiment(text) AS mood, count(*) AS n FROM reviews GROUP BY mood",
    leading=(),
    values=("value",),
    options=(EXAMPLES, CONFIDENCE, REVIEW, REASONING, REASONS, MODEL, ON_ERROR),
    question="What is the sentiment of the text?",
    returns=Constraint("choice", options=("positive", "neutral", "negative")),
    result="TEXT: positive, neutral or negative",
    doc="""The sentiment of ``value``, as TEXT: positive, neutral or negative. For the sentiment about
one aspect, ask ``llm_classify(value, ['positive', 'negative'], question => 'What about the price?')``.
""",
)
