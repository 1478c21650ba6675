"""``llm_map``: the answer to a question about a row, of the type that the query needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.options import OnError
from blendfusion.udfs.declare.call import Confidence
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_MAP = Ingredient(
    name="llm_map",
    summary="the answer to a question about a row, of the type that the query needs",
)


def llm_map(
    question: str,
    *values: ColumnLike,
    options: Sequence[str] | Mapping[str, str] | None = None,
    returns: str | None = None,
    regex: str | None = None,
    examples: Sequence[Sequence[str]] | None = None,
    consistency: int | None = None,
    confidence: Confidence | None = None,
    targets: Targets | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """The answer to ``question`` for each row: TEXT, or the type in ``returns``.

    ``values`` are columns (or names of columns); ``{}`` or ``{column}`` in the question refers to
    them. Rows whose values are all NULL or blank give NULL without a call. ``examples`` are worked
    examples, ``[["a value", "its answer"], …]``. ``options`` is a closed set of answers, ``regex``
    a pattern for the whole answer, ``returns`` one of bool, int, float, date, timestamp, text,
    list. In SQL the type also follows from the context: ``WHERE llm_map(…) > 3`` asks for whole
    numbers.
    ``consistency``: the number of ways to ask the question; the majority answer counts.
    ``confidence``: the minimum probability of an answer from a closed set; an answer below it is
    NULL. "keep" gives a struct of ``value`` and ``confidence``.
    ``targets``: accuracy, recall or precision of a cascade, in which a small model or vectors
    (``proxy``) decide for a large one.
    ``model``: name(s) of registered models. Several form a failover chain; with ``targets``, two
    form a cascade (small, large).
    ``on_error``: the result for a row without a valid answer: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_MAP,
        (question, *values),
        options=options,
        returns=returns,
        regex=regex,
        examples=examples,
        consistency=consistency,
        confidence=confidence,
        targets=targets,
        model=model,
        on_error=on_error,
    )
