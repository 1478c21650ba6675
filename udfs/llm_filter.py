"""``llm_filter``: does the answer to a yes/no question hold for a row."""

from __future__ import annotations

from collections.abc import Sequence

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.expression import ColumnLike, expression
from blendfusion.udfs.ingredient import Ingredient

LLM_FILTER = Ingredient(
    name="llm_filter",
    summary="does the answer to a yes/no question hold for a row",
    returns=Constraint("boolean"),
)


def llm_filter(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[str]] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """True where the answer to ``question`` is yes, as BOOLEAN.

    ``values`` are columns (or names of columns); ``{}`` or ``{column}`` in the question refers to
    them. Rows whose values are all NULL or blank give NULL without a call. ``examples`` are
    worked ones, ``[["a value", "its answer"], …]``.
    ``on_error``: what a row without a valid answer gives: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); else as the session says.
    """
    return expression(LLM_FILTER, (question, *values), examples=examples, on_error=on_error)
