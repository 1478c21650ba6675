"""``llm_float``: a number from a row."""

from __future__ import annotations

from collections.abc import Sequence

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_FLOAT = Ingredient(
    name="llm_float",
    summary="a number from a row",
    returns=Constraint("number"),
)


def llm_float(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[str]] | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """The answer to ``question`` for each row, as DOUBLE.

    ``values`` are columns (or names of columns); ``{}`` or ``{column}`` in the question refers to
    them. Rows whose values are all NULL or blank give NULL without a call. ``examples`` are worked
    examples, ``[["a value", "its answer"], …]``.
    ``model``: name(s) of registered models; several form a failover chain.
    ``on_error``: the result for a row without a valid answer: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_FLOAT, (question, *values), examples=examples, model=model, on_error=on_error
    )
