"""Pairs of names of our own, by which the weights of whether two values are the same are fitted.

``names.txt`` has names of several kinds, each in the part ``choose`` or ``report``, a line for each
thing, whose spellings stand between bars. The pairs are all that name one thing, and those of
different things that are spelled most alike, which are the candidates of llm_same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

from blendfusion.models.prompts.canonical import SAME
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.tuning.bank import FOLDER, Part
from blendfusion.models.services.tuning.fit import (
    Quality,
    ScoredQuestion,
    fit,
    left_out,
    odds,
    quality,
    relative_scores,
)
from blendfusion.models.services.verbalizer.likeness import likeness
from blendfusion.models.services.verbalizer.query_likelihood import Score, neutral_values
from blendfusion.models.services.verbalizer.ways import Way
from blendfusion.models.vectors.tfidf import Nearest
from blendfusion.types import Constraint, Task

TASK = Task("llm_same", SAME, Constraint("boolean"), ("", ""))
_NEAREST = 3
CANDIDATES = (Way(similarity=1.0), Way(answer=1.0), Way(answer=1.0, similarity=1.0))
"""By the likeness of names alone, by the answer, by both: later ones must be better. A model that
tells nothing of names leaves it to their spelling."""


@dataclass(frozen=True)
class NamePairs:
    """Pairs of names of one kind. ``same``: whether both name one thing."""

    kind: str
    pairs: tuple[tuple[str, str], ...]
    same: tuple[bool, ...]


class Scorer(Protocol):
    """A model that tells the scores of questions."""

    def question_scores(self, task: Task, values: Sequence[Values], way: Way) -> list[Score]: ...


def name_pairs(part: Part) -> Iterator[NamePairs]:
    """The pairs of each kind of a part.

    >>> next(name_pairs("choose")).kind
    'companies'
    """
    for section in f"\n{(FOLDER / 'names.txt').read_text('utf-8')}".split("\n# ")[1:]:
        head, *lines = section.splitlines()
        kind, own = head.split()
        if own == part:
            things = [line.split(" | ") for line in lines if line.strip()]
            yield _pairs(kind, {name: n for n, names in enumerate(things) for name in names})


def _pairs(kind: str, thing_of: dict[str, int]) -> NamePairs:
    names = sorted(thing_of)
    near = Nearest(names)
    pairs = {
        (min(name, names[other]), max(name, names[other]))
        for name in names
        for other in near.of(name, _NEAREST + 1)
        if names[other] != name
    }
    pairs |= {pair for pair in combinations(names, 2) if thing_of[pair[0]] == thing_of[pair[1]]}
    listed = tuple(sorted(pairs))
    return NamePairs(kind, listed, tuple(thing_of[a] == thing_of[b] for a, b in listed))


def with_pairs(model: Scorer, way: Way) -> Way:
    """``way`` with the weights of whether two names are of the same thing."""
    known = _score_pairs(model, "choose", way)
    best = fit(max(CANDIDATES, key=lambda one: left_out(one, known).sum), known)
    return replace(
        way,
        same_answer=best.answer,
        same_likeness=best.similarity,
        same_threshold=best.threshold,
    )


def quality_of_pairs(model: Scorer, way: Way) -> Quality:
    """The quality of answers about the pairs that nothing is chosen by."""
    own = Way(answer=way.same_answer, similarity=way.same_likeness, threshold=way.same_threshold)
    return quality([(odds(own, one.scores), one.yes) for one in _score_pairs(model, "report", way)])


def _score_pairs(model: Scorer, part: Part, way: Way) -> list[ScoredQuestion]:
    """The scores of the pairs of each kind, asked in the form of ``way``."""
    form = replace(way, same_answer=1.0, same_likeness=0.0)
    unrelated = model.question_scores(TASK, neutral_values(TASK), form)
    return [_of_kind(model, one, form, unrelated) for one in name_pairs(part)]


def _of_kind(model: Scorer, one: NamePairs, way: Way, unrelated: Sequence[Score]) -> ScoredQuestion:
    found_scores = model.question_scores(TASK, one.pairs, way)
    scores = [
        (likelihood, answer, likeness(*pair))
        for (likelihood, answer, _), pair in zip(found_scores, one.pairs, strict=True)
    ]
    found = relative_scores(one.kind, scores, unrelated, one.same)
    found.scores[:, 3] = 0.0  # one question: the mean answer is a constant
    return found
