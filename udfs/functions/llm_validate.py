"""``llm_validate``: whether a claim holds, judged by all rows of a group."""

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
    """Whether the rows of a group support ``claim``, as BOOLEAN.

    NULL and blank rows are left out; a group without other rows gives NULL without a call. Without
    ``order_by``, the rows are sorted, so that the answer does not depend on the plan. A context
    longer than the model's window is folded in several passes. ``where`` is the FILTER clause.
    ``confidence``: the minimum probability of an answer; an answer below it is NULL. "keep" gives a
    struct of ``value`` and ``confidence``.
    ``model``: name(s) of registered models; several form a failover chain.
    ``on_error``: the result for a group without a valid answer: NULL ("null"), an error of the
    query ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
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
