"""``llm_prefers``: the rank of a value, by comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow as pa

from blendfusion.errors import ArgumentError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.arguments import Literal
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import ColumnQuestion, ColumnResults
from blendfusion.udfs.declare.options import MODEL, ON_ERROR, text, whole
from blendfusion.udfs.declare.parameter import Parameter
from blendfusion.udfs.services.columns.both_orders import BothOrders
from blendfusion.udfs.services.columns.closure import Pair
from blendfusion.udfs.services.columns.list_ranking import list_ranking
from blendfusion.udfs.services.columns.ranking import most_pairs, ranking, strengths_of
from blendfusion.udfs.text.numbered_lines import number_lines

if TYPE_CHECKING:
    from blendfusion.udfs.ask.user_model import UserModel

SIDES = ("first", "second")
MOST_CHECKED = 100_000
MOST_RANKS = 1_000_000
MOST_LISTED = 50


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
LIST_SIZE = Parameter(
    "list_size",
    "The number of values that the model puts into order at once, from 3; by default it compares "
    "pairs. Lists are fewer questions, and need a large model.",
    whole(3, MOST_LISTED, "The size of a list"),
    annotation="int",
    example="llm_prefers('which is angrier', text, list_size => 10)",
)


def _prefers(
    model: UserModel,
    question: str,
    values: Sequence[str],
    k: int | None = None,
    scores: str | None = None,
    check: int | None = None,
    list_size: int | None = None,
) -> ColumnResults:
    n = len(values)
    criterion = question.strip().rstrip("?")
    if list_size is not None:
        return _by_lists(model, criterion, values, k, scores, list_size)
    posed = f"Of the two texts, {criterion}: the first or the second?"

    def preference(pairs: Sequence[Pair]) -> Sequence[float | None]:
        rows = [(values[a], values[b]) for a, b in pairs]
        return model.likelihoods(posed, rows, SIDES, SIDES)

    wanted = n if k is None else min(n, abs(k))
    judge = BothOrders(preference, 1 + (most_pairs(n, wanted) - n) // 4)
    prior = None if scores is None else strengths_of(model.scores(scores, values))
    found = ranking(n, judge, k, prior, check)
    turned = f"{judge.turned:,} of {judge.sampled:,} pairs have another winner in the other order"
    both = ", so all are asked in both" if judge.is_biased else ""
    ranks = _numbers(found.places, n, descending=k is not None and k < 0)
    return ColumnResults(ranks, [f"ranks: {found}", f"orders: {turned}{both}"])


def _by_lists(
    model: UserModel,
    criterion: str,
    values: Sequence[str],
    k: int | None,
    scores: str | None,
    size: int,
) -> ColumnResults:
    posed = (
        f"Put the texts into order by this question: {criterion}? Begin with the one to which it "
        "applies most. Answer with their numbers."
    )

    def judge(lists: Sequence[Sequence[int]]) -> list[list[int] | None]:
        answers: list[list[int] | None] = [None] * len(lists)
        for length in sorted({len(own) for own in lists}):
            numbers = [str(number) for number in range(1, length + 1)]
            places = [i for i, own in enumerate(lists) if len(own) == length]
            # Texts stand in an order that says nothing of the answer, the same in every run.
            shown = [
                sorted(lists[i], key=lambda place: crc32(values[place].encode())) for i in places
            ]
            texts = [number_lines([values[place] for place in own]) for own in shown]
            returns = f"list{{{length},{length}}}"
            given = model.ask(posed, pa.array(texts, pa.string()), returns=returns, options=numbers)
            for i, own, answer in zip(places, shown, given.to_pylist(), strict=True):
                answers[i] = answer and [own[int(number) - 1] for number in answer]
        return answers

    strengths = (
        [0.0] * len(values) if scores is None else strengths_of(model.scores(scores, values))
    )
    found = list_ranking(len(values), judge, size, k, [-strength for strength in strengths])
    ranks = _numbers(found.places, len(values), descending=k is not None and k < 0)
    return ColumnResults(ranks, [f"ranks: {found}"])


def _numbers(places: Sequence[int], n: int, *, descending: bool) -> list[int]:
    """The rank of each value, from 1."""
    ranks = [n - len(places) if descending else len(places) + 1] * n
    for number, place in enumerate(places):
        ranks[place] = n - number if descending else number + 1
    return ranks


LLM_PREFERS = Ingredient(
    name="llm_prefers",
    summary="in `ORDER BY`: the rank of a value, by comparisons of pairs",
    example="SELECT body FROM tickets ORDER BY llm_prefers('Which is more urgent?', body) LIMIT 3",
    kind=ColumnQuestion(_prefers, pa.int64(), takes_media=True, ranks=K.name),
    leading=(CRITERION,),
    values=("value",),
    options=(K, SCORES, CHECK, LIST_SIZE, MODEL, ON_ERROR),
    returns=Constraint("choice", options=SIDES),
    result="BIGINT, 1 for the first",
    doc="""The rank of ``value`` among the values of the column, as BIGINT: 1 for the one that ``question``
prefers to all others.

The model compares pairs of distinct values, each pair once. For the first k of n values, a tournament
compares at most n + 2 k log₂ n pairs; for all of them, a sort compares about n log₂ n. Some pairs are
asked in both orders; if their winners depend on the order, so are all pairs. Other pairs whose order
follows from answers are compared to find cycles, which EXPLAIN ANALYZE counts. If there are many, the
strengths that make all answers most likely are the order. ``llm_score`` is cheaper: one question a
value. ``list_size`` puts lists of texts into order instead of pairs.""",
)
