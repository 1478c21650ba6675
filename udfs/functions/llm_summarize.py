"""``llm_summarize``: a summary of all rows of a group."""

from __future__ import annotations

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_SUMMARIZE = Ingredient(
    name="llm_summarize",
    summary="a summary of all rows of a group",
    leading=(),
    question="Summarize the main points.",
    returns=Constraint("text"),
    aggregate=True,
    form="summary",
)


def llm_summarize(
    *values: ColumnLike,
    question: str | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
    order_by: ColumnLike | None = None,
    where: Expr | None = None,
) -> Expr:
    """A summary of the rows of a group, as TEXT; ``question`` is the topic.

    NULL and blank rows are left out; a group without other rows gives NULL without a call. Without
    ``order_by``, the rows are sorted, so that the answer does not depend on the plan. A context
    longer than the model's window is folded in several passes. ``where`` is the FILTER clause.
    ``model``: name(s) of registered models; several form a failover chain.
    ``on_error``: the result for a group without a valid answer: NULL ("null"), an error of the
    query ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_SUMMARIZE,
        values,
        question=question,
        model=model,
        on_error=on_error,
        order_by=order_by,
        where=where,
    )
