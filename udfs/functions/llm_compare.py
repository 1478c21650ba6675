"""``llm_compare``: how two values compare, whatever way they are written."""

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
    """True where ``a = b``, ``a < b``, … holds of what the values mean, as BOOLEAN.

    ``operator`` is one of ``=  <>  <  <=  >  >=``; ``a`` and ``b`` are columns (or their names) or
    literals, ``lit("5 km")``. NULL where either is NULL or blank. Texts that are the same, and two
    numbers, amounts, dates or times, are compared without a call; number words, dates and units with
    the extra ``compare`` installed. Of any other pair a model is asked once, whichever way round
    it stands: ``<>`` is not ``=``, ``a > b`` is ``b < a``, and ``a <= b`` is not ``b < a``. ``model``: who is asked, by a name that
    the session knows.
    """
    return expression(LLM_COMPARE, (a, b), operator=operator, model=model, on_error=on_error)
