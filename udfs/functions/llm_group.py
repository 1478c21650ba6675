"""``llm_group``: the group of a value, by its meaning."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.types import Constraint
from blendfusion.udfs.ask.user_model import UserModel
from blendfusion.udfs.columns.groups import OTHER, groups
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import ColumnQuestion, ColumnResults
from blendfusion.udfs.declare.options import MODEL, ON_ERROR, text, whole
from blendfusion.udfs.declare.parameter import Parameter

MOST_INTO = 100
_NAME = r"[^\n]{2,48}"

INTO = Parameter(
    "into",
    "The number of clusters that the model names; names that are equal become one group. By default "
    "√(n/2) for n values, from 2 to 20.",
    whole(2, MOST_INTO, "The number of groups"),
    annotation="int",
    example="llm_group(review, into => 5, by => 'what went wrong')",
)
BY = Parameter("by", "What the groups are about, in words.", text)


class _Namer:
    def __init__(self, model: UserModel, by: str | None) -> None:
        self._model = model
        self._by = f" as to {by}" if by else ""

    def names(self, samples: Sequence[str]) -> Sequence[str | None]:
        question = (
            f"What do these texts have in common{self._by}? Answer with a name of a few words."
        )
        names: list[str | None] = self._model.ask(
            question, pa.array(samples, pa.string()), regex=_NAME
        ).to_pylist()
        return names

    def chosen(self, texts: Sequence[str], names: Sequence[str]) -> Sequence[str | None]:
        question = f"To which group does the text belong{self._by}?"
        chosen: list[str | None] = self._model.ask(
            question, pa.array(texts, pa.string()), options=names
        ).to_pylist()
        return chosen


def _group(
    model: UserModel, values: Sequence[str], into: int | None = None, by: str | None = None
) -> ColumnResults:
    embedder = model.embedder
    if embedder is None:
        raise QueryError(
            "llm_group finds clusters by vectors, and this session has no embedder",
            hint="Name one: bf.connect(embedder='wordllama'). Without vectors, llm_classify sorts "
            "values into labels.",
        )
    found, how = groups(values, into, embedder, _Namer(model, by))
    return ColumnResults(found, [how])


LLM_GROUP = Ingredient(
    name="llm_group",
    summary="in `GROUP BY`: groups of values by meaning, which the model names",
    kind=ColumnQuestion(_group, pa.string()),
    leading=(),
    values=("value",),
    options=(INTO, BY, MODEL, ON_ERROR),
    question="To which group does the text belong?",
    returns=Constraint("text"),
    result="TEXT, the name of a group",
    doc=f"""The name of the group to which ``value`` belongs, as TEXT; '{OTHER}' if it fits none.

The vectors of the column's distinct values form clusters. The model names each cluster from the values
nearest to its centre, one question a cluster. Then it sorts each distinct value into one of the names, one
question a value. Needs an embedder.

Groups depend on the values of the column. To sort further values into the same groups, keep the names
and use ``llm_classify``.""",
)
