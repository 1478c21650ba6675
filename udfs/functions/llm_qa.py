"""``llm_qa``: the answer to a question about all rows of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.udfs.declare.call import Confidence
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_QA = Ingredient(
    name="llm_qa",
    summary="the answer to a question about all rows of a group",
    aggregate=True,
)


def llm_qa(
    question: str,
    *values: ColumnLike,
    options: Sequence[str] | Mapping[str, str] | None = None,
    returns: str | None = None,
    regex: str | None = None,
    examples: Sequence[Sequence[str]] | None = None,
    confidence: Confidence | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
    order_by: ColumnLike | None = None,
    where: Expr | None = None,
) -> Expr:
    """The answer to ``question`` about the rows of a group: TEXT, or the type in ``returns``.

    NULL and blank rows are left out; a group without other rows gives NULL without a call. Without
    ``order_by``, the rows are sorted, so that the answer does not depend on the plan. A context
    longer than the model's window is folded in several passes. ``where`` is the FILTER clause.
    ``confidence``: the minimum probability of an answer from a closed set; an answer below it is
    NULL. "keep" gives a struct of ``value`` and ``confidence``.
    ``model``: name(s) of registered models; several form a failover chain.
    ``on_error``: the result for a group without a valid answer: NULL ("null"), an error of the
    query ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_QA,
        (question, *values),
        options=options,
        returns=returns,
        regex=regex,
        examples=examples,
        confidence=confidence,
        model=model,
        on_error=on_error,
        order_by=order_by,
        where=where,
    )
