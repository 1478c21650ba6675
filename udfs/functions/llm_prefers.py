"""``llm_prefers``: the rank of a value, by comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from blendfusion.errors import ArgumentError
from blendfusion.types import Constraint
from blendfusion.udfs.ask.user_model import UserModel
from blendfusion.udfs.columns.both_orders import BothOrders
from blendfusion.udfs.columns.closure import Pair
from blendfusion.udfs.columns.ranking import most_pairs, ranking, strengths_of
from blendfusion.udfs.declare.arguments import Literal
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import ColumnQuestion, ColumnResults
from blendfusion.udfs.declare.options import MODEL, ON_ERROR, text, whole
from blendfusion.udfs.declare.parameter import Parameter

SIDES = ("first", "second")
MOST_CHECKED = 100_000
MOST_RANKS = 1_000_000


def _ranks(given: Literal, name: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < abs(given) <= MOST_RANKS:
        raise ArgumentError(
            f"{name} => {given!r} is not possible",
            hint="Write the number of first ranks, or with a minus that of last ranks.",
        )
    return given


CRITERION = Parameter(
    "question",
    "What is asked about two values, such as 'which is angrier'.",
    text,
    example="ORDER BY llm_prefers('which is angrier', text) LIMIT 3",
)
K = Parameter(
    "k",
    "The number of first ranks that are wanted, or of last ranks if it is negative; all other "
    "values share the next rank. ``ORDER BY llm_prefers(…) LIMIT k`` implies it.",
    _ranks,
    annotation="int",
)
SCORES = Parameter(
    "scores",
    "A question for scores of single values, asked first. They decide where comparisons do not.",
    text,
    example="llm_prefers('which is angrier', text, scores => 'How angry is it?')",
)
CHECK = Parameter(
    "check",
    "The number of pairs that are compared although other answers imply their order. By default "
    "half of the wanted ranks.",
    whole(0, MOST_CHECKED, "The size of a sample"),
    annotation="int",
)


def _prefers(
    model: UserModel,
    question: str,
    values: Sequence[str],
    k: int | None = None,
    scores: str | None = None,
    check: int | None = None,
) -> ColumnResults:
    n = len(values)
    criterion = question.strip().rstrip("?")
    posed = f"Of the two texts, {criterion}: the first or the second?"

    def preference(pairs: Sequence[Pair]) -> Sequence[float | None]:
        rows = [(values[a], values[b]) for a, b in pairs]
        return model.likelihoods(posed, rows, SIDES, SIDES)

    wanted = n if k is None else min(n, abs(k))
    judge = BothOrders(preference, 1 + (most_pairs(n, wanted) - n) // 4)
    prior = None if scores is None else strengths_of(model.scores(scores, values))
    found = ranking(n, judge, k, prior, check)
    turned = f"{judge.turned:,} of {judge.sampled:,} pairs have another winner in the other order"
    both = ", so all are asked in both" if judge.biased else ""
    ranks = _numbers(found.places, n, descending=k is not None and k < 0)
    return ColumnResults(ranks, [f"ranks: {found}", f"orders: {turned}{both}"])


def _numbers(places: Sequence[int], n: int, *, descending: bool) -> list[int]:
    """The rank of each value, from 1."""
    ranks = [n - len(places) if descending else len(places) + 1] * n
    for number, place in enumerate(places):
        ranks[place] = n - number if descending else number + 1
    return ranks


LLM_PREFERS = Ingredient(
    name="llm_prefers",
    summary="in `ORDER BY`: the rank of a value, by comparisons of pairs",
    kind=ColumnQuestion(_prefers, pa.int64(), ranks=K.name),
    leading=(CRITERION,),
    values=("value",),
    options=(K, SCORES, CHECK, MODEL, ON_ERROR),
    returns=Constraint("choice", options=SIDES),
    result="BIGINT, 1 for the first",
    doc="""The rank of ``value`` among the values of the column, as BIGINT: 1 for the one that ``question``
prefers to all others.

The model compares pairs of distinct values, each pair once. For the first k of n values, a tournament
compares at most n + 2 k log₂ n pairs; for all of them, a sort compares about n log₂ n. Some pairs are
asked in both orders; if their winners depend on the order, so are all pairs. Other pairs whose order
follows from answers are compared to find cycles, which EXPLAIN ANALYZE counts. If there are many, the
strengths that make all answers most likely are the order. ``llm_score`` is cheaper: one question a
value.""",
)
