"""``llm_classify``: the label that fits a row best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.options import OnError
from blendfusion.udfs.declare.call import Confidence
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_CLASSIFY = Ingredient(
    name="llm_classify",
    summary="which one of some labels fits a row",
    leading=(),
    trailing=("labels",),
    max_values=1,
)


def llm_classify(
    value: ColumnLike,
    labels: Sequence[str] | Mapping[str, str],
    *,
    question: str | None = None,
    examples: Sequence[Sequence[str]] | None = None,
    consistency: int | None = None,
    confidence: Confidence | None = None,
    targets: Targets | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """The label in ``labels`` that fits the value best, as TEXT. A mapping gives each label a
    meaning:
    ``{"billing": "invoices and refunds", "other": "all else"}``.

    NULL and blank values give NULL without a call. ``question`` is the criterion, if the labels
    alone do not express it.
    ``consistency``: the number of ways to ask the question; the majority answer counts.
    ``confidence``: the minimum probability of an answer; an answer below it is NULL. "keep" gives a
    struct of ``value`` and ``confidence``.
    ``targets``: accuracy, recall or precision of a cascade, in which a small model or vectors
    (``proxy``) decide for a large one.
    ``model``: name(s) of registered models. Several form a failover chain; with ``targets``, two
    form a cascade (small, large).
    ``on_error``: the result for a row without a valid answer: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_CLASSIFY,
        (value, labels if isinstance(labels, Mapping | str) else list(labels)),
        question=question,
        examples=examples,
        consistency=consistency,
        confidence=confidence,
        targets=targets,
        model=model,
        on_error=on_error,
    )
