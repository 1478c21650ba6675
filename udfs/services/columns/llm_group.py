"""``llm_group``: the group of a value, by its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.errors import QueryError, connect_with
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.types import Constraint
from blendfusion.udfs.ask.media_words import words_of_media
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import ColumnQuestion, ColumnResults
from blendfusion.udfs.declare.options import MODEL, ON_ERROR, name_of_kept, one_of, text, whole
from blendfusion.udfs.declare.parameter import Parameter
from blendfusion.udfs.services.columns.group_store import OTHER, Group, Groups, GroupStore
from blendfusion.udfs.services.columns.groups import found_groups, sorted_into, with_level
from blendfusion.udfs.services.columns.name_registry import check_same

if TYPE_CHECKING:
    from blendfusion.udfs.ask.user_model import UserModel

MOST_INTO = 100
MOST_LEVELS = 5
_NAME = r"[^\n]{2,48}"
_DESCRIPTION = r"[^\n]{2,240}"
_OTHER_MEANING = "none of the others"

INTO = Parameter(
    "into",
    "The number of clusters that the model names; names that are equal become one group. By default "
    "√(n/2) for n values, from 2 to 20.",
    whole(2, MOST_INTO, "The number of groups"),
    annotation="int",
    example="llm_group(review, into => 5, by => 'what went wrong')",
)
BY = Parameter("by", "What the groups are about, in words.", text)
LEVEL = Parameter(
    "level",
    "The level of the groups: 2 for groups of the groups' names, 3 for groups of these.",
    whole(1, MOST_LEVELS, "The level of groups"),
    annotation="int",
    default=1,
)

DESCRIBE = Parameter(
    "describe",
    "The model also describes each group in a sentence, which it then reads when it sorts values into "
    "the groups.",
    one_of((True, False), "Write true or false."),
    annotation="bool",
    default=False,
    example="llm_group(review, into => 5, describe => true, name => 'complaints')",
)
NAME = Parameter(
    "name",
    "The name under which ``session.groups`` keeps the groups. Calls with the same name sort their "
    "values into the same groups, so that only new values are asked.",
    name_of_kept,
    example="llm_group(review, into => 5, name => 'complaints')",
)


class _Namer:
    def __init__(self, model: UserModel, by: str | None, *, describes: bool) -> None:
        self._model = model
        self._by = f" as to {by}" if by else ""
        self._describes = describes

    def names(self, samples: Sequence[str]) -> Sequence[str | None]:
        question = (
            f"What do these texts have in common{self._by}? Answer with a name of a few words."
        )
        return self._write(question, samples, _NAME)

    def descriptions(self, samples: Sequence[str]) -> Sequence[str | None]:
        if not self._describes:
            return [None] * len(samples)
        question = f"What do these texts have in common{self._by}? Answer in one sentence."
        return self._write(question, samples, _DESCRIPTION)

    def choose(
        self, texts: Sequence[str], groups: Sequence[Group]
    ) -> Sequence[tuple[str, float] | None]:
        question = f"To which group does the text belong{self._by}?"
        meanings = [group.description or group.name for group in groups]
        return self._model.choices(
            question,
            texts,
            [*(group.name for group in groups), OTHER],
            [*meanings, _OTHER_MEANING] if self._describes else (),
        )

    def _write(self, question: str, texts: Sequence[str], pattern: str) -> list[str | None]:
        found: list[str | None] = self._model.ask(
            question, pa.array(texts, pa.string()), regex=pattern
        ).to_pylist()
        return found


def _group(
    model: UserModel,
    values: Sequence[str],
    into: int | None = None,
    by: str | None = None,
    level: int = 1,
    describe: bool = False,
    name: str | None = None,
) -> ColumnResults:
    groups = None if name is None else model.store(GroupStore).get(name)
    if groups is not None:
        parameters = {
            "by": (by, groups.by),
            "into": (into, groups.into),
            "describe": (describe or None, groups.described or None),
        }
        check_same("groups", str(name), parameters)
        by, describe = groups.by, groups.described
    words = words_of_media(model, values)  # vectors are of words
    values = [words.get(value, value) or OTHER for value in values]
    namer = _Namer(model, by, describes=describe)
    clusters = 0
    kept, complete = groups is not None, True
    if groups is None:
        found = found_groups(values, into, _embedder(model), namer)
        groups, clusters, complete = (
            Groups(by, into, (found.groups,), describe),
            found.clusters,
            found.complete,
        )
    while len(groups.levels) < level and groups.levels[-1]:
        groups, all_named = with_level(groups, _embedder(model), namer)
        complete = complete and all_named
    note = ""
    if name is not None and not model.guesses:
        if complete and groups.levels[0]:
            groups = model.store(GroupStore).keep(name, groups)
        else:
            note = "; not kept, as the model did not name all"
    chosen = sorted_into(values, groups.levels[0], namer, model.embedder)
    others = sum(one == OTHER for one in chosen)
    names = f"{len(groups.levels[0]):,} names" + (" kept" if kept else f" of {clusters:,} clusters")
    how = f"groups: {names}; {others:,} of {len(values):,} values fit none{note}"
    shown = min(level, len(groups.levels))
    return ColumnResults([groups.title_above(one, shown) for one in chosen], [how])


def _embedder(model: UserModel) -> Embedder:
    embedder = model.embedder
    if embedder is None:
        raise QueryError(
            "llm_group finds clusters by vectors, and this session has no embedder",
            hint=f"Name one: {connect_with(embedder='wordllama')}. Without vectors, llm_classify sorts "
            "values into labels.",
        )
    return embedder


LLM_GROUP = Ingredient(
    name="llm_group",
    summary="in `GROUP BY`: groups of values by meaning, which the model names",
    example="SELECT llm_group(body) AS subject, count(*) AS n FROM tickets GROUP BY subject",
    kind=ColumnQuestion(_group, pa.string(), takes_media=True),
    leading=(),
    values=("value",),
    options=(INTO, BY, LEVEL, DESCRIBE, NAME, MODEL, ON_ERROR),
    question="To which group does the text belong?",
    returns=Constraint("text"),
    result="TEXT, the name of a group",
    doc=f"""The name of the group to which ``value`` belongs, as TEXT; '{OTHER}' if it fits none.

The vectors of the column's distinct values form clusters. The model names each cluster from the values
nearest to its centre, one question a cluster. Then it sorts each distinct value into one of the names, one
question a value; the less sure it is, the more the vectors count. Needs an embedder.

Groups depend on the values of the column. ``name`` keeps them: then further values are sorted into the
same groups. ``describe => true`` takes a further question a cluster. ``level => 2`` gives coarser groups, each of which holds whole groups of level 1.""",
)
