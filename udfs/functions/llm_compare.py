"""``llm_compare``: a comparison of two values, whatever their notation."""

from __future__ import annotations

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_COMPARE = Ingredient(
    name="llm_compare",
    summary="is a value equal to, less or greater than another, however they are written",
    leading=(),
    returns=Constraint("boolean"),
    min_values=2,
    max_values=2,
    compares=True,
)


def llm_compare(
    a: ColumnLike,
    operator: str,
    b: ColumnLike,
    *,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """Whether ``a = b``, ``a < b``, … holds for the meanings of the values, as BOOLEAN.

    ``operator`` is one of ``= <> < <= > >=``; ``a`` and ``b`` are columns (or their names) or
    literals, ``lit("5 km")``. NULL if either is NULL or blank. Equal texts, and two numbers,
    amounts, dates or times, are compared without a call; number words, dates and units with the
    extra ``compare``. The model is asked about any other pair once, in either order: ``<>`` is the
    negation of ``=``, ``a > b`` is ``b < a``, and ``a <= b`` is the negation of ``b < a``.
    ``model``: name of a registered model.
    """
    return expression(LLM_COMPARE, (a, b), operator=operator, model=model, on_error=on_error)
