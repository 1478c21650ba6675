"""``llm_classify``: which one of some labels fits a row."""

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
    """The one of ``labels`` that fits the value best, as TEXT; always one of them. A mapping says what
    each label means: ``{"billing": "invoices and refunds", "other": "all else"}``.

    NULL and blank values give NULL without a call. ``question`` says by what to classify, where the
    labels alone do not tell.
    ``consistency``: in how many ways the question is put; what most of the answers say counts.
    ``confidence``: the least probability of an answer, below which it is NULL; "keep" gives a struct of
    ``value`` and ``confidence``.
    ``targets``: what is promised where a small model, or vectors (``proxy``), decide for a large one.
    ``model``: who is asked, by a name that the session knows; of several each what those before fail at, or
    of two with ``targets`` the second what the first may not decide.
    ``on_error``: what a row without a valid answer gives: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); else as the session says.
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
