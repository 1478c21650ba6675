"""``llm_join``: whether two values of a join match."""

from __future__ import annotations

from collections.abc import Sequence

from datafusion import Expr

from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.pairing import CANDIDATES
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression

LLM_JOIN = Ingredient(
    name="llm_join",
    summary="do two values belong together; in ON, each meets its match on the other side",
    leading=(),
    question="Are both the same thing, perhaps written differently?",
    returns=Constraint("boolean"),
    min_values=2,
    max_values=2,
    pairs=True,
)


def llm_join(
    value: ColumnLike,
    other: ColumnLike,
    *,
    how: str | None = None,
    many: bool = False,
    k: int = CANDIDATES,
    exact: bool = False,
    labels: Sequence[str] | None = None,
    label_question: str | None = None,
    match: str | Sequence[Sequence[str]] | None = None,
    check: int | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """Whether ``value`` of one side of a join matches ``other`` of the other side, as BOOLEAN.

    In the condition of a join, each distinct ``value`` matches at most one ``other`` (any number
    with ``many``): an equal one, or one that differs only in case, accents and punctuation, without
    a call; else the one that the model chooses among the ``k`` with the most similar spelling.
    ``how`` defines a match in words; then no match is free. With ``exact``, or if both values come
    from one side, the model is asked about every pair. ``check`` asks so many of the values without
    a match once more, among the next ``k``: EXPLAIN ANALYZE then estimates the matches beyond. NULL
    if a value is NULL or blank.

    With ``labels``, the model labels each value (``label_question`` is the criterion), and labels
    decide which values match: equal ones, ``match="different"`` ones, or pairs such as ``[["a",
    "b"]]`` (then FALSE beside a NULL, too, if the other's label is in no pair). With ``how`` and
    without ``match``, ``check`` sampled pairs of values per pair of labels decide; undecided pairs
    of labels are asked pair by pair. ``model``: name of a registered model.
    """
    return expression(
        LLM_JOIN,
        (value, other),
        how=how,
        many=many or None,
        k=None if k == CANDIDATES else k,
        exact=exact or None,
        labels=labels,
        label_question=label_question,
        match=match,
        check=check,
        model=model,
        on_error=on_error,
    )
