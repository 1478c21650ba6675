"""``llm_join``: do two values of a join belong together."""

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
    """True where ``value`` of one side of a join matches ``other`` of the other, as BOOLEAN.

    In the condition of a join each distinct ``value`` is matched with at most one ``other`` (with any
    number, if ``many``): one that is equal, or equal but for case, accents and punctuation, without
    a call; else one that the model chooses among the ``k`` that look most like it. ``how`` says in
    words what a match is; then nothing is free. With ``exact``, or where both are of one side, the
    model is asked of every pair. With ``check`` so many of the values without a match are asked once
    more, among the next ``k``: EXPLAIN ANALYZE says what that tells of matches beyond. NULL where a
    value is NULL or blank.

    With ``labels`` each value is asked for its label (``label_question`` says by what), and labels decide
    which values match: the same ones, ``match="different"`` ones, or pairs, as in ``[["a", "b"]]`` (then FALSE
    beside a NULL, too, where the other's label is in no pair).
    Where ``how`` is said and ``match`` is not, sampled pairs say it, ``check`` of them for each pair of
    labels; pairs of labels that do not decide are asked about pair by pair. ``model``: who is asked, by
    a name that the session knows.
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
