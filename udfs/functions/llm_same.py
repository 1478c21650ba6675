"""``llm_same``: the entity that a value of a column names."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from blendfusion.types import Constraint
from blendfusion.udfs.ask.user_model import UserModel
from blendfusion.udfs.columns.entities import entities
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import ColumnQuestion, ColumnResults
from blendfusion.udfs.declare.options import MODEL, ON_ERROR, text, whole
from blendfusion.udfs.declare.parameter import Parameter

CANDIDATES = 5
"""Candidates per value. Their pairs imply 95 to 100 % of the true pairs of products, papers,
restaurants and beers by their names (benchmarks/bench_entities.py)."""
MOST_CANDIDATES = 50
MOST_CHECKED = 100_000

QUESTION = "Are both the same thing, perhaps written differently?"

BY = Parameter(
    "by",
    "What makes two values the same, in words; then values that differ only in case, accents and "
    "punctuation are asked about, too.",
    text,
    example="llm_same(company, by => 'subsidiaries of one company')",
)
K = Parameter(
    "k",
    "The number of similar values with which each value is compared: those with the most similar "
    "spelling, with ``by`` half of them those with the most similar vectors. At most 0.6 k pairs per "
    "value are asked.",
    whole(1, MOST_CANDIDATES, "The number of candidates"),
    annotation="int",
    default=CANDIDATES,
)


CHECK = Parameter(
    "check",
    "The number of pairs that are asked although other answers imply that they are the same. An "
    "entity with a contradiction is asked about all its pairs, and divided by majority.",
    whole(0, MOST_CHECKED, "The size of a sample"),
    annotation="int",
)


def _same(
    model: UserModel,
    values: Sequence[str],
    by: str | None = None,
    k: int = CANDIDATES,
    check: int | None = None,
) -> ColumnResults:
    question = f"Do both match: {by}?" if by else QUESTION

    def judge(pairs: Sequence[tuple[str, str]]) -> Sequence[bool | None]:
        sides = (pa.array(side, pa.string()) for side in zip(*pairs, strict=True))
        answers: list[bool | None] = model.ask(question, *sides, returns="bool").to_pylist()
        return answers

    embedder = model.embedder if by else None
    found = entities(values, judge, k, embedder, alike=not by, check=check or 0)
    return ColumnResults(found.names, [f"entities: {found}"])


LLM_SAME = Ingredient(
    name="llm_same",
    summary="in `GROUP BY`: which values of a column name the same thing",
    kind=ColumnQuestion(_same, pa.string()),
    leading=(),
    values=("value",),
    options=(BY, K, CHECK, MODEL, ON_ERROR),
    question=QUESTION,
    returns=Constraint("boolean"),
    result="TEXT, one of the values",
    doc="""The value that stands for the entity of ``value``, as TEXT: equal for all values of the
column that name the same thing. It is the one most similar to the others.

Values that differ only in case, accents and punctuation are the same without a call. Then the model
is asked whether pairs of similar values are the same, the most similar first. Each pair is asked at
most once, and no pair whose answer follows from others: if a is b and b is c, a is c; if a is b and b
is not c, a is not c. ``check``
samples such pairs. EXPLAIN ANALYZE counts the pairs.""",
)
