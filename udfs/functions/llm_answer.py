"""``llm_answer``: the answer to a question about the texts of a row, of any number and length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.udfs.declare.call import Confidence
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_ANSWER = Ingredient(
    name="llm_answer",
    summary="the answer to a question about a row's list of texts",
    lists=True,
    max_values=1,
)


def llm_answer(
    question: str,
    value: ColumnLike,
    *,
    options: Sequence[str] | Mapping[str, str] | None = None,
    returns: str | None = None,
    regex: str | None = None,
    examples: Sequence[Sequence[str]] | None = None,
    confidence: Confidence | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """The answer to ``question`` about all items of a list, or about a text: TEXT, or the type in
    ``returns``.

    Items keep their order; NULL and blank ones are left out, and a list without other items gives
    NULL without a call. A list longer than the model's window is read in parts, as ``llm_qa`` reads
    a group.
    ``confidence``: the minimum probability of an answer from a closed set; an answer below it is
    NULL. "keep" gives a struct of ``value`` and ``confidence``.
    ``model``: name(s) of registered models; several form a failover chain.
    ``on_error``: the result for a row without a valid answer: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_ANSWER,
        (question, value),
        options=options,
        returns=returns,
        regex=regex,
        examples=examples,
        confidence=confidence,
        model=model,
        on_error=on_error,
    )
