"""``llm_summary``: a summary of the texts of a row, however many and long."""

from __future__ import annotations

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_SUMMARY = Ingredient(
    name="llm_summary",
    summary="a summary of a row's list of texts",
    leading=(),
    question="Summarize the main points.",
    returns=Constraint("text"),
    lists=True,
    form="summary",
    max_values=1,
)


def llm_summary(
    value: ColumnLike,
    *,
    question: str | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """A summary of all items of a list, or of a text, as TEXT; ``question`` says what to look for.

    Items are read as ``llm_answer`` reads them.
    ``model``: who is asked, by a name that the session knows; of several each what those before fail at.
    ``on_error``: what a row without a valid answer gives: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); else as the session says.
    """
    return expression(LLM_SUMMARY, (value,), question=question, model=model, on_error=on_error)
