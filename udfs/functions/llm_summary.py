"""``llm_summary``: a summary of the texts of a row, of any number and length."""

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
    """A summary of all items of a list, or of a text, as TEXT; ``question`` is the topic.

    Items are read as ``llm_answer`` reads them.
    ``model``: name(s) of registered models; several form a failover chain.
    ``on_error``: the result for a row without a valid answer: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(LLM_SUMMARY, (value,), question=question, model=model, on_error=on_error)
