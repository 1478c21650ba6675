"""``llm_filter``: does the answer to a yes/no question hold for a row."""

from __future__ import annotations

from collections.abc import Sequence

from datafusion import Expr

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.call import Confidence
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_FILTER = Ingredient(
    name="llm_filter",
    summary="does the answer to a yes/no question hold for a row",
    returns=Constraint("boolean"),
)


def llm_filter(
    question: str,
    *values: ColumnLike,
    examples: Sequence[Sequence[str]] | None = None,
    consistency: int | None = None,
    confidence: Confidence | None = None,
    targets: Targets | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """True where the answer to ``question`` is yes, as BOOLEAN.

    ``values`` are columns (or names of columns); ``{}`` or ``{column}`` in the question refers to
    them. Rows whose values are all NULL or blank give NULL without a call. ``examples`` are
    worked ones, ``[["a value", "its answer"], …]``.
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
        LLM_FILTER,
        (question, *values),
        examples=examples,
        consistency=consistency,
        confidence=confidence,
        targets=targets,
        model=model,
        on_error=on_error,
    )
