"""``llm_classify``: which one of some labels fits a row."""

from __future__ import annotations

from collections.abc import Sequence

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.udfs.expression import ColumnLike, expression
from blendfusion.udfs.ingredient import Ingredient

LLM_CLASSIFY = Ingredient(
    name="llm_classify",
    summary="which one of some labels fits a row",
    leading=(),
    trailing=("labels",),
    max_values=1,
)


def llm_classify(
    value: ColumnLike,
    labels: Sequence[str],
    *,
    question: str | None = None,
    examples: Sequence[Sequence[str]] | None = None,
    on_error: OnError | None = None,
) -> Expr:
    """The one of ``labels`` that fits the value best, as TEXT; always one of them.

    NULL and blank values give NULL without a call. ``question`` says by what to classify, where the
    labels alone do not tell.
    ``on_error``: what a row without a valid answer gives: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); else as the session says.
    """
    return expression(
        LLM_CLASSIFY, (value, list(labels)), question=question, examples=examples, on_error=on_error
    )
