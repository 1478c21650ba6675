"""Finds the entities among texts: which of them are the same thing, perhaps written differently.

Texts that differ only in case, accents and punctuation are the same. The model is asked about pairs
of similar texts, the most similar first; pairs that follow from earlier answers are not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blendfusion.models.embedders.embedder import Embedder
from blendfusion.models.vectors.tfidf import Nearest, normalize
from blendfusion.udfs.declare.kinds import Conflict
from blendfusion.udfs.services.columns.candidate_pairs import Candidates, candidate_pairs
from blendfusion.udfs.services.columns.closure import Closure, Pair, rounds
from blendfusion.udfs.services.columns.contradictions import Contradictions, Judge, in_order

QUESTIONS_SHARE = 0.6
"""The maximum pairs asked, per text and candidate: three pairs a text with five candidates."""


@dataclass(slots=True)
class Entities:
    """The entities among texts, and how they were found."""

    names: list[str] = field(default_factory=list)
    """For each text, the text that stands for its entity."""
    entities: int = 0
    """The number of new entities."""
    known: int = 0
    """The number of entities that were known before."""
    joined: int = 0
    """Known entities of which some texts are."""
    alike: int = 0
    """Texts that are the same as another except for case, accents and punctuation."""
    candidates: int = 0
    """The number of pairs of similar texts."""
    questions: int = 0
    implied: int = 0
    """Candidates that followed from answers about others."""
    unanswered: int = 0
    """Pairs without a valid answer. They count as different, and imply nothing."""
    left_out: int = 0
    """Candidates beyond the maximum number of pairs, the least similar ones."""
    missed: int = 0
    """Texts that were not compared with some that are as similar as others that were."""
    rounds: int = 0
    checked: int = 0
    """Implied pairs that were asked after all."""
    contradicted: int = 0
    """Checked pairs with another answer than the implied one."""
    split: int = 0
    """Entities that were divided because of such pairs."""
    conflicts: list[Conflict] = field(default_factory=list)

    def __str__(self) -> str:
        """
        >>> print(Entities(["a"] * 9, 4, alike=2, candidates=12, questions=8, implied=4, rounds=2))
        4 of 9 values; 2 alike; 8 of 12 pairs asked in 2 rounds, 4 implied
        """
        alike = f"; {self.alike:,} alike" if self.alike else ""
        unanswered = f", {self.unanswered:,} without an answer" if self.unanswered else ""
        left_out = f", {self.left_out:,} less similar ones left out" if self.left_out else ""
        missed = f", {self.missed:,} values may have further ones" if self.missed else ""
        check = (
            f"; {self.contradicted:,} of {self.checked:,} implied pairs checked contradict, "
            f"{self.split:,} split"
            if self.checked
            else ""
        )
        rounds_text = "1 round" if self.rounds == 1 else f"{self.rounds:,} rounds"
        before = f", {self.joined:,} of {self.known:,} known ones" if self.known else ""
        return (
            f"{self.entities:,} of {len(self.names):,} values{before}{alike}; {self.questions:,} of "
            f"{self.candidates:,} pairs asked in {rounds_text}, {self.implied:,} implied{unanswered}{left_out}{missed}{check}"
        )


def entities(
    texts: Sequence[str],
    judge: Judge,
    k: int,
    embedder: Embedder | None,
    *,
    alike: bool,
    check: int = 0,
    known: Mapping[str, str] | None = None,
    whole: int = 0,
    words: Mapping[str, str] | None = None,
) -> Entities:
    """The entities of distinct texts. ``alike``: texts of one normal form are the same without a
    question. ``embedder``: finds candidates by meaning beside those by spelling; may be None.
    ``check``: pairs that are asked although answers imply that they are the same. ``known``: other
    texts by the names of their entities, which stay as they are: a text joins one of them, or
    none. All pairs of up to ``whole`` texts are candidates. ``words``: what stands for texts that
    say nothing by themselves where candidates are looked for."""
    known = known or {}
    found = Entities(known=len(set(known.values())))
    every = [*sorted(known), *texts]
    closure, numbers = _with_known(every, known)
    firsts = _firsts(every, len(known), closure, alike=alike)
    places = sorted(set(firsts.values()) | {*range(len(known))})
    found.alike = len(every) - len(places)
    compared = [every[place] for place in places]
    most = max(1, int(QUESTIONS_SHARE * k * len(texts)))
    if len(compared) <= whole:
        k, embedder, most = len(compared), None, len(compared) ** 2
    search = _Search(every, places, numbers, judge, closure, most, found, words or {})
    answers = search.run(k, embedder, widen=whole > 0)
    sets = closure.sets()
    if check:
        fixed = {*range(len(known))}
        contradictions = Contradictions(every, judge, answers, firsts, fixed)
        sets = contradictions.divide(sets, check)
        found.checked, found.contradicted = contradictions.checked, contradictions.found
        found.split, found.conflicts = contradictions.split, contradictions.conflicts
    name_of = {place: name for own in sets for name in [_name(own, every, known)] for place in own}
    found.names = [name_of[place] for place in range(len(known), len(every))]
    before, now = set(known.values()), set(found.names)
    found.entities, found.joined = len(now - before), len(now & before)
    return found


def _with_known(every: Sequence[str], known: Mapping[str, str]) -> tuple[Closure, list[int]]:
    """(the state of all texts, the number of the entity of each known text)"""
    closure = Closure(len(every))
    first_of: dict[str, int] = {}
    numbers = [first_of.setdefault(known[text], place) for place, text in enumerate(sorted(known))]
    for place, first in enumerate(numbers):
        closure.same(first, place)
        closure.fix(place)
    return closure, numbers


def _firsts(every: Sequence[str], known: int, closure: Closure, *, alike: bool) -> dict[int, int]:
    """The first text of the normal form of each text; itself for the first ``known`` ones."""
    forms: dict[str, int] = {}
    firsts: dict[int, int] = {}
    for place, text in enumerate(every):
        form = normalize(text) if alike else ""
        first = forms.setdefault(form, place) if form else place
        firsts[place] = place if place < known else first
        closure.same(firsts[place], place)
    return firsts


def _name(places: Sequence[int], every: Sequence[str], known: Mapping[str, str]) -> str:
    """The name of an entity: the one that it had before, or its canonical text."""
    if places[0] < len(known):
        return known[every[places[0]]]
    return every[canonical(places, every)]


@dataclass(slots=True)
class _Search:
    """Asks about pairs of texts, of which ``compared`` has the places, until nothing is open or
    ``most`` pairs are asked; ``closure`` knows the answers then."""

    every: Sequence[str]
    places: Sequence[int]
    numbers: Sequence[int]
    judge: Judge
    closure: Closure
    most: int
    found: Entities
    words: Mapping[str, str]
    answers: dict[Pair, bool | None] = field(default_factory=dict)

    def run(self, k: int, embedder: Embedder | None, *, widen: bool) -> dict[Pair, bool | None]:
        """The answers about the pairs of each text with its ``k`` nearest. ``widen``: texts of
        which others are as similar as these are compared with more, while pairs are left."""
        texts = [self.words.get(text, text) for text in map(self.every.__getitem__, self.places)]
        near = candidate_pairs(texts, k, embedder, self.numbers)
        self._ask(near.pairs)
        missed = self._candidates_beyond(near, texts)
        while widen and missed and k < len(texts) and self.found.questions < self.most:
            k *= 2
            more = candidate_pairs(texts, k, None, self.numbers, only=missed)
            self._ask(more.pairs)
            near = near.with_more(more)
            missed = self._candidates_beyond(near, texts)
        self._count(near.pairs)
        self.found.missed = len(missed)
        return self.answers

    def _ask(self, pairs: Sequence[Pair]) -> None:
        found, closure = self.found, self.closure
        new = [pair for pair in map(self._place, pairs) if pair not in self.answers]
        for whole_round in rounds(new, closure):
            now = whole_round[: self.most - found.questions]
            if not now:
                break
            answers = self.judge([in_order(self.every[a], self.every[b]) for a, b in now])
            self.answers.update(zip(now, answers, strict=True))
            for pair, same in zip(now, answers, strict=True):
                if same:
                    closure.same(*pair)
                elif same is False:
                    closure.different(*pair)
                else:
                    found.unanswered += 1
            found.questions += len(now)
            found.rounds += 1

    def _count(self, pairs: Sequence[Pair]) -> None:
        found = self.found
        found.candidates = len(pairs)
        open_pairs = sum(self.closure.implication(*self._place(pair)) is None for pair in pairs)
        found.left_out = max(0, open_pairs - found.unanswered)
        found.implied = len(pairs) - found.questions - found.left_out

    def _candidates_beyond(self, near: Candidates, texts: Sequence[str]) -> set[int]:
        """The texts that may be the same as others that are as similar as their last candidates, or
        as the last pair that was asked."""
        sent = [s for pair, s in near.similar.items() if self._place(pair) in self.answers]
        least = min(sent, default=0.0)
        found = {
            text
            for pair, similarity in near.similar.items()
            if similarity >= least > 0 and self._is_open(pair)
            for text in pair
        }
        words = Nearest(texts) if near.cut else None
        for text, similarity in near.cut.items():
            assert words is not None
            others = words.score(texts[text], len(texts))
            tied = (other for other, score in others if score == similarity and other != text)
            if any(self._is_open((text, other)) for other in tied):
                found.add(text)
        return found

    def _is_open(self, pair: Pair) -> bool:
        """Whether nothing is known of a pair. One without a valid answer counts as different."""
        placed = self._place(pair)
        return placed not in self.answers and self.closure.implication(*placed) is None

    def _place(self, pair: Pair) -> Pair:
        """A pair of compared texts as one of all."""
        a, b = sorted((self.places[pair[0]], self.places[pair[1]]))
        return a, b


def canonical(places: Sequence[int], texts: Sequence[str]) -> int:
    """The place of the text that stands for an entity: the one that is most similar to the others,
    then the longest, then the first in alphabetical order."""
    if len(places) == 1:
        return places[0]
    own = [texts[place] for place in places]
    words = Nearest(own)
    similar = [0.0] * len(own)
    for text in own:
        for other, score in words.score(text, len(own)):
            similar[other] += score
    best = min(range(len(own)), key=lambda i: (-round(similar[i], 3), -len(own[i]), own[i]))
    return places[best]
