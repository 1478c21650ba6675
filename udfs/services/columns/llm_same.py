"""``llm_same``: the entity that a value of a column names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.models.prompts.canonical import SAME
from blendfusion.types import Constraint
from blendfusion.udfs.ask.media import has_media
from blendfusion.udfs.ask.media_words import words_of_media
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import ColumnQuestion, ColumnResults
from blendfusion.udfs.declare.options import MODEL, ON_ERROR, name_of_kept, text, whole
from blendfusion.udfs.declare.parameter import Parameter
from blendfusion.udfs.services.columns.entities import Entities, entities
from blendfusion.udfs.services.columns.entity_store import EntityStore, KnownEntities
from blendfusion.udfs.services.columns.name_registry import check_same

if TYPE_CHECKING:
    from blendfusion.udfs.ask.user_model import UserModel

CANDIDATES = 5
"""Candidates per value. Their pairs imply 95 to 100 % of the true pairs of products, papers,
restaurants and beers by their names (benchmarks/bench_entities.py)."""
WHOLE = 12
"""Values of which all pairs are compared where no number of candidates is given."""
MOST_CANDIDATES = 50
MOST_CHECKED = 100_000


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
    "value are asked. Without it, up to 12 values are all compared with one another, and more values "
    "with 5, or with more of those that are equally similar.",
    whole(1, MOST_CANDIDATES, "The number of candidates"),
    annotation="int",
)


CHECK = Parameter(
    "check",
    "The number of pairs that are asked although other answers imply that they are the same. An "
    "entity with a contradiction is asked about all its pairs, and divided by majority; a warning "
    "counts the contradictions, and ``trace.conflicts`` lists them.",
    whole(0, MOST_CHECKED, "The size of a sample"),
    annotation="int",
)


WRITE = Parameter(
    "write",
    "What the model writes as the name of an entity of several values, in words: one question an "
    "entity. By default one of the values is chosen.",
    text,
    example="llm_same(company, write => 'the full legal name')",
)
NAME = Parameter(
    "name",
    "The name under which ``session.entities`` keeps the entities. Calls with the same name compare "
    "new values with these and with one another; known values are not asked again.",
    name_of_kept,
    example="llm_same(supplier, name => 'companies')",
)
_WRITTEN = r"[^\n]{1,120}"


def _same(
    model: UserModel,
    values: Sequence[str],
    by: str | None = None,
    k: int | None = None,
    check: int | None = None,
    write: str | None = None,
    name: str | None = None,
) -> ColumnResults:
    if name is not None and any(has_media((value,)) for value in values):
        raise QueryError(
            "llm_same: named entities are kept for texts only, and these are images or recordings",
            hint="Leave the name out, or give it answers about them: "
            "llm_same(llm_text('Which product is it?', photo), name => …) in a subquery.",
        )
    while True:
        before = None if name is None else model.store(EntityStore).get(name)
        if name is not None and before is not None:
            check_same("entities", name, {"by": (by, before.by)})
            by = before.by
        known = before or KnownEntities(by)
        new = [value for value in values if value not in known.name_of]
        found = _entities(model, new, known, k, check or 0)
        summary = [f"entities: {found}"]
        after = replace(
            known, name_of={**known.name_of, **dict(zip(new, found.names, strict=True))}
        )
        if write:
            after, line = _write_names(model, after, values, write)
            summary.append(line)
        if name is None or after == known or model.guesses:
            break
        if found.unanswered:
            summary[0] += "; not kept, as pairs have no answer"
            break
        if model.store(EntityStore).keep(name, before, after):
            break
    shown = [after.title(after.name_of[value]) for value in values]
    return ColumnResults(shown, summary, found.conflicts, found.missed)


def _entities(
    model: UserModel, new: Sequence[str], known: KnownEntities, k: int | None, check: int
) -> Entities:
    question = f"Do both match: {known.by}?" if known.by else SAME

    def judge(pairs: Sequence[tuple[str, str]]) -> Sequence[bool | None]:
        sides = (pa.array(side, pa.string()) for side in zip(*pairs, strict=True))
        answers: list[bool | None] = model.ask(question, *sides, returns="bool").to_pylist()
        return answers

    embedder = model.embedder if known.by else None
    whole = 0 if k else WHOLE
    return entities(
        new,
        judge,
        k or CANDIDATES,
        embedder,
        alike=not known.by,
        check=check,
        known=known.name_of,
        whole=whole,
        words=words_of_media(model, new) if len(new) > whole else {},
    )


def _write_names(
    model: UserModel, known: KnownEntities, values: Sequence[str], write: str
) -> tuple[KnownEntities, str]:
    """(``known`` with names that the model writes for the entities of several values, how many)

    A name that another entity has is not used."""
    own = {known.name_of[value] for value in values}
    members: dict[str, list[str]] = {}
    for value, entity in sorted(known.name_of.items()):
        members.setdefault(entity, []).append(value)
    several = [e for e in sorted(own) if len(members[e]) > 1 and e not in known.titles]
    lists = ["\n".join(f"- {value}" for value in members[entity]) for entity in several]
    question = f"These are names of the same thing. What is {write.strip().rstrip('?')}?"
    given = model.ask(question, pa.array(lists, pa.string()), regex=_WRITTEN).to_pylist()
    taken = {known.title(entity): entity for entity in members}
    titles = dict(known.titles)
    for entity, answer in zip(several, given, strict=True):
        title = " ".join((answer or "").split())
        if title and taken.setdefault(title, entity) == entity:
            titles[entity] = title
    wrote = len(titles) - len(known.titles)
    return replace(known, titles=titles), (
        f"names: {wrote:,} of {len(several):,} entities of several values have a written one"
    )


LLM_SAME = Ingredient(
    name="llm_same",
    summary="in `GROUP BY`: which values of a column name the same thing",
    example="SELECT llm_same(country) AS land, count(*) AS n FROM reviews GROUP BY land",
    kind=ColumnQuestion(_same, pa.string(), takes_media=True),
    leading=(),
    values=("value",),
    options=(BY, K, CHECK, WRITE, NAME, MODEL, ON_ERROR),
    question=SAME,
    returns=Constraint("boolean"),
    result="TEXT, one of the values, or a written name",
    doc="""The value that stands for the entity of ``value``, as TEXT: equal for all values of the
column that name the same thing. It is the one most similar to the others.

Values that differ only in case, accents and punctuation are the same without a call. Then the model
is asked whether pairs of similar values are the same, the most similar first. Each pair is asked at
most once, and no pair whose answer follows from others: if a is b and b is c, a is c; if a is b and b
is not c, a is not c. ``check``
samples such pairs. EXPLAIN ANALYZE counts the pairs. ``name`` keeps the entities for further values, of
this column or another.""",
)
