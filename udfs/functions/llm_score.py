"""``llm_score``: a degree, on a scale of whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blendfusion.errors import ArgumentError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.arguments import Literal
from blendfusion.udfs.declare.decision_questions import MOST_LEVELS, are_levels
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.options import (
    CONFIDENCE,
    EXAMPLES,
    MODEL,
    ON_ERROR,
    REASONING,
    REASONS,
)
from blendfusion.udfs.declare.parameter import Parameter

LOWEST, HIGHEST = 0, 10
MOST_POINTS = 11
"""Maximum number of points of a scale: models distinguish no more, and servers give the
probabilities of some 20 words."""

_HINT = (
    f"A scale has 2 to {MOST_POINTS} whole numbers, as low => 1, high => 5; without them it goes "
    f"from {LOWEST} to {HIGHEST}."
)


def _scale_end(given: Literal, name: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise ArgumentError(f"{name} => {given!r} is not a whole number", hint=_HINT)
    return given


LOW = Parameter(
    "low",
    "The lowest point of the scale.",
    _scale_end,
    annotation="int",
    default=LOWEST,
    example="ORDER BY llm_score('How angry?', text, low => 1, high => 5) DESC LIMIT 3",
)
HIGH = Parameter(
    "high",
    f"The highest point of the scale, which has {MOST_POINTS} points at most.",
    _scale_end,
    annotation="int",
    default=HIGHEST,
)


def _level_list(given: Literal, name: str) -> tuple[str, ...]:
    levels = given if isinstance(given, list) else []
    texts = tuple(level for level in levels if isinstance(level, str) and level.strip())
    if len(texts) != len(levels) or not are_levels(texts):
        raise ArgumentError(
            f"{name} => {given!r} is not possible",
            hint=f"Write 2 to {MOST_LEVELS} different texts, the lowest level first: "
            "levels => ['not at all', 'somewhat', 'very'].",
        )
    return texts


LEVELS = Parameter(
    "levels",
    "The description of each level, the lowest first; the scale then goes from 0 to their number "
    "less one.",
    _level_list,
    annotation="Sequence[str]",
    example="llm_score('How urgent is it?', text, levels => ['can wait', 'this week', 'today'])",
)


def _answers(read: Mapping[str, Any]) -> Constraint:
    levels = read.get("levels")
    if levels is not None:
        if "low" in read or "high" in read:
            raise ArgumentError(
                "levels do not go with low and high", hint="The levels are the scale, from 0 on."
            )
        return Constraint("score", scale=(0, len(levels) - 1), meanings=levels)
    low, high = read.get("low", LOWEST), read.get("high", HIGHEST)
    if not low < high < low + MOST_POINTS:
        raise ArgumentError(f"a scale from {low} to {high} is not possible", hint=_HINT)
    return Constraint("score", scale=(low, high))


LLM_SCORE = Ingredient(
    name="llm_score",
    summary="a degree, on a scale of whole numbers",
    example="SELECT text FROM reviews ORDER BY llm_score('How angry is the customer?', text) DESC LIMIT 3",
    options=(LOW, HIGH, LEVELS, EXAMPLES, CONFIDENCE, REASONING, REASONS, MODEL, ON_ERROR),
    returns=Constraint("score", scale=(LOWEST, HIGHEST)),
    answers=_answers,
    result="DOUBLE, 0 to 10",
    doc="""The degree to which ``question`` holds for each row, as DOUBLE between ``low`` and
``high``: the expected answer, by the model's probability of each whole number of the scale. A
server without probabilities gives one of the numbers. For one plain idea ("How angry is the
customer?"), a local model gives the probability that it holds, on the scale.

Sort by it for the best rows:
``frame.sort(bf.llm_score("How angry is it?", "text").sort(ascending=False)).limit(5)``.""",
)
