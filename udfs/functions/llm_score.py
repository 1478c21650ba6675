"""``llm_score``: a degree, on a scale of whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.errors import ArgumentError
from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient, Literal
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LOW, HIGH = 0, 10
MOST_POINTS = 11
"""Of one scale: models tell no more apart, and servers say the odds of some 20 words at most."""


def _answers(named: Mapping[str, Literal]) -> Constraint:
    low, high = named.get("low", LOW), named.get("high", HIGH)
    for name, bound in (("low", low), ("high", high)):
        if not isinstance(bound, int) or isinstance(bound, bool):
            raise _error(f"{name} => {bound!r} is not a whole number")
    assert isinstance(low, int)
    assert isinstance(high, int)
    if not low < high < low + MOST_POINTS:
        raise _error(f"a scale from {low} to {high} is not possible")
    return Constraint("score", scale=(low, high))


def _error(problem: str) -> ArgumentError:
    return ArgumentError(
        f"llm_score: {problem}",
        hint=f"A scale has 2 to {MOST_POINTS} whole numbers, as low => 1, high => 5; without them "
        f"it goes from {LOW} to {HIGH}.",
    )


LLM_SCORE = Ingredient(
    name="llm_score",
    summary="how much of something a row has, on a scale",
    named=("low", "high", "examples", "model", "on_error"),
    returns=Constraint("score", scale=(LOW, HIGH)),
    answers=_answers,
)


def llm_score(
    question: str,
    *values: ColumnLike,
    low: int = LOW,
    high: int = HIGH,
    examples: Sequence[Sequence[str]] | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """The degree to which ``question`` holds for each row, as DOUBLE between ``low`` and ``high``:
    the
    expected answer, by the model's probability of each whole number of the scale (11 at most). A
    server without probabilities gives one of the numbers. For one plain idea ("How angry is the
    customer?"), a local model gives the probability that it holds, on the scale.

    ``values`` are columns (or names of columns); ``{}`` or ``{column}`` in the question refers to
    them. Rows whose values are all NULL or blank give NULL without a call. ``examples`` are worked
    examples, ``[["a value", "its score"], …]``. Sort by it for the best rows:
    ``frame.sort(bf.llm_score("How angry is it?", "text").sort(ascending=False)).limit(5)``.
    ``model``: name(s) of registered models; several form a failover chain.
    ``on_error``: the result for a row without a valid answer: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_SCORE,
        (question, *values),
        low=low,
        high=high,
        examples=examples,
        model=model,
        on_error=on_error,
    )
