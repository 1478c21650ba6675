"""``llm_list``: a list of texts from a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_LIST = Ingredient(
    name="llm_list",
    summary="a list of texts from a row",
    returns=Constraint("list", item=Constraint("text")),
)


def llm_list(
    question: str,
    *values: ColumnLike,
    options: Sequence[str] | Mapping[str, str] | None = None,
    examples: Sequence[Sequence[str]] | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """The answer to ``question`` for each row, as LIST of TEXT.

    ``values`` are columns (or names of columns); ``{}`` or ``{column}`` in the question refers to
    them. Rows whose values are all NULL or blank give NULL without a call. ``examples`` are worked
    examples, ``[["a value", "its answer"], …]``. ``options`` is the closed set of items.
    ``model``: name(s) of registered models; several form a failover chain.
    ``on_error``: the result for a row without a valid answer: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_LIST,
        (question, *values),
        options=options,
        examples=examples,
        model=model,
        on_error=on_error,
    )
