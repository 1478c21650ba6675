"""``llm_filter``: whether the answer to a yes/no question about a row is yes."""

from __future__ import annotations

from collections.abc import Sequence

from datafusion import Expr

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.call import Confidence
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_FILTER = Ingredient(
    name="llm_filter",
    summary="does the answer to a yes/no question hold for a row",
    returns=Constraint("boolean"),
)


def llm_filter(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[str]] | None = None,
    consistency: int | None = None,
    confidence: Confidence | None = None,
    targets: Targets | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """Whether the answer to ``question`` is yes, as BOOLEAN.

    ``values`` are columns (or names of columns); ``{}`` or ``{column}`` in the question refers to
    them. Rows whose values are all NULL or blank give NULL without a call. ``examples`` are worked
    examples, ``[["a value", "its answer"], …]``.
    ``consistency``: the number of ways to ask the question; the majority answer counts.
    ``confidence``: the minimum probability of an answer; an answer below it is NULL. "keep" gives a
    struct of ``value`` and ``confidence``.
    ``targets``: accuracy, recall or precision of a cascade, in which a small model or vectors
    (``proxy``) decide for a large one.
    ``model``: name(s) of registered models. Several form a failover chain; with ``targets``, two
    form a cascade (small, large).
    ``on_error``: the result for a row without a valid answer: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_FILTER,
        (question, *values),
        examples=examples,
        consistency=consistency,
        confidence=confidence,
        targets=targets,
        model=model,
        on_error=on_error,
    )
