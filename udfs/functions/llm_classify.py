"""``llm_classify``: the label that fits a row best."""

from __future__ import annotations

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import (
    CHOICE_CASCADE,
    CONFIDENCE,
    CONSISTENCY,
    CRITERION,
    EXAMPLES,
    LABELS,
    LIST_TYPE,
    MODEL,
    ON_ERROR,
    REASONING,
    REASONS,
    REVIEW,
)

LLM_CLASSIFY = Ingredient(
    name="llm_classify",
    summary="which label fits",
    example="SELECT llm_classify(body, ['delivery', 'payment', 'defect']) AS topic, count(*) "
    "AS n FROM tickets GROUP BY topic",
    leading=(),
    values=("value",),
    beside=True,
    trailing=(LABELS,),
    options=(
        CRITERION,
        EXAMPLES,
        CONSISTENCY,
        CONFIDENCE,
        REVIEW,
        REASONING,
        REASONS,
        MODEL,
        *CHOICE_CASCADE,
        ON_ERROR,
        LIST_TYPE,
    ),
    result="TEXT, always one of the labels",
    doc="""The label that fits the value best, as TEXT; with ``returns`` a list, all labels that fit.
Several values, such as a text and an image, are one question: ``llm_classify(text, photo, labels)``
in SQL, a list of columns in Python.""",
)
