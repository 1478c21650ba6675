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
    """The answer to ``question`` for each row: TEXT, or what ``returns`` names.

    ``values`` are columns (or names of columns); ``{}`` or ``{column}`` in the question refers to
    them. Rows whose values are all NULL or blank give NULL without a call. ``examples`` are
    worked ones, ``[["a value", "its answer"], …]``. ``options`` is a closed set of answers, ``regex`` a pattern for the whole answer, ``returns``
    one of bool, int, float, date, timestamp, text, list. In SQL the type also follows from
    the context: ``WHERE llm_map(…) > 3`` asks for whole numbers.
    ``consistency``: in how many ways the question is put; what most of the answers say counts.
    ``confidence``: the least probability of an answer from a closed set, below which it is NULL; "keep"
    gives a struct of ``value`` and ``confidence``.
    ``targets``: what is promised where a small model, or vectors (``proxy``), decide for a large one.
    ``model``: who is asked, by a name that the session knows; of several each what those before fail at, or
    of two with ``targets`` the second what the first may not decide.
    ``on_error``: what a row without a valid answer gives: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); else as the session says.
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
