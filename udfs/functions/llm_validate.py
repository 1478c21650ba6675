"""``llm_validate``: does a claim hold, judged by all rows of a group."""

from __future__ import annotations

from collections.abc import Sequence

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.call import Confidence
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_VALIDATE = Ingredient(
    name="llm_validate",
    summary="does a claim hold, judged by all rows of a group",
    leading=("claim",),
    returns=Constraint("boolean"),
    aggregate=True,
    form="statement",
)


def llm_validate(
    claim: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[str]] | None = None,
    confidence: Confidence | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
    order_by: ColumnLike | None = None,
    where: Expr | None = None,
) -> Expr:
    """True where the rows of a group support ``claim``, as BOOLEAN.

    NULL and blank rows are left out; a group without others gives NULL without a call. Without
    ``order_by`` the rows are put in an order of ours, so that the answer does not depend on the
    plan. A context longer than the model's window is folded in several passes. ``where`` is the
    FILTER clause.
    ``confidence``: the least probability of an answer, below which it is NULL; "keep" gives a struct of
    ``value`` and ``confidence``.
    ``model``: who is asked, by a name that the session knows; of several each what those before fail at.
    ``on_error``: what a group without a valid answer gives: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); else as the session says.
    """
    return expression(
        LLM_VALIDATE,
        (claim, *values),
        examples=examples,
        confidence=confidence,
        model=model,
        on_error=on_error,
        order_by=order_by,
        where=where,
    )
