"""Finds answers that contradict what other answers imply, and divides the entities they stand in.

If a is b and b is c, a is c. Where the model says otherwise about a sample of such pairs, it is
asked about all pairs of the entity, and the majority of answers between two parts decides.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import combinations
from typing import TypeAlias

from blendfusion.udfs.declare.kinds import Conflict
from blendfusion.udfs.services.columns.closure import Pair

Judge: TypeAlias = Callable[[Sequence[tuple[str, str]]], Sequence[bool | None]]
"""Whether the texts of each pair are the same thing; None: without an answer."""

MOST_DIVIDED = 30
"""The largest entity of which all pairs are asked."""


def in_order(one: str, other: str) -> tuple[str, str]:
    """A pair as it is asked: in ascending order, so that each pair is one question."""
    return (one, other) if one <= other else (other, one)


class Contradictions:
    """``answers``: those so far. ``firsts``: of each text, the first of its normal form.
    ``known``: the places of the texts whose entities were known before, which stay together."""

    def __init__(
        self,
        texts: Sequence[str],
        judge: Judge,
        answers: Mapping[Pair, bool | None],
        firsts: Mapping[int, int],
        known: Set[int] = frozenset(),
    ) -> None:
        self._texts = texts
        self._judge = judge
        self._answers = dict(answers)
        self._firsts = firsts
        self._known = known
        self.checked = self.found = self.split = 0
        self.conflicts: list[Conflict] = []

    def divide(self, sets: Sequence[list[int]], check: int) -> list[list[int]]:
        """The sets after ``check`` pairs that answers imply to be the same were asked."""
        implied = [pair for own in sets for pair in self._open(own)]
        sample = sorted(random.Random(0).sample(implied, min(check, len(implied))))
        self._ask(sample)
        wrong = {place for pair in sample if self._answers[pair] is False for place in pair}
        self.checked = len(sample)
        self.found = sum(self._answers[pair] is False for pair in sample)
        doubtful = [own for own in sets if wrong & {*own} and len(own) <= MOST_DIVIDED]
        self._ask([pair for own in doubtful for pair in self._open(own)])
        result: list[list[int]] = []
        for own in sets:
            parts = self._parts(own) if own in doubtful else [own]
            self.split += len(parts) > 1
            result += parts
            if wrong & {*own}:
                self.conflicts += self._conflicts(own, parts)
        return result

    def _conflicts(self, own: Sequence[int], parts: Sequence[Sequence[int]]) -> Iterator[Conflict]:
        """The answers about a set that are not as its ``parts`` have it, or divide it."""
        part_of = {place: number for number, part in enumerate(parts) for place in part}
        for pair in combinations(sorted({self._firsts[place] for place in own}), 2):
            answer = self._answers.get(pair)
            same = part_of[pair[0]] == part_of[pair[1]]
            if answer is not None and not (answer and same):
                yield Conflict(*in_order(*(self._texts[at] for at in pair)), answer, same)

    def _open(self, own: Iterable[int]) -> list[Pair]:
        """The pairs of a set that were not asked, except pairs that are known to be the same."""
        places = sorted({self._firsts[place] for place in own})
        pairs = (pair for pair in combinations(places, 2) if not {*pair} <= self._known)
        return [pair for pair in pairs if pair not in self._answers]

    def _ask(self, pairs: Sequence[Pair]) -> None:
        if pairs:
            answers = self._judge([in_order(self._texts[a], self._texts[b]) for a, b in pairs])
            self._answers.update(zip(pairs, answers, strict=True))

    def _parts(self, own: Sequence[int]) -> list[list[int]]:
        """The parts of a set, made of its texts by uniting the two parts between which most answers
        are yes, as long as these are more than half."""
        places = sorted({self._firsts[place] for place in own})
        known = [place for place in places if place in self._known]
        parts = [known] if known else []
        parts += [[place] for place in places if place not in self._known]
        while len(parts) > 1:
            best = max(combinations(range(len(parts)), 2), key=lambda p: self._share(parts, p))
            if self._share(parts, best) <= 0.5:
                break
            a, b = best
            parts[a] = sorted(parts[a] + parts[b])
            del parts[b]
        place_of = {place: number for number, part in enumerate(parts) for place in part}
        found: list[list[int]] = [[] for _ in parts]
        for place in own:
            found[place_of[self._firsts[place]]].append(place)
        return found

    def _share(self, parts: Sequence[Sequence[int]], pair: tuple[int, int]) -> float:
        first, second = (parts[number] for number in pair)
        answers = [self._answers.get((min(a, b), max(a, b))) for a in first for b in second]
        return sum(answer is True for answer in answers) / len(answers)
