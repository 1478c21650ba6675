"""Ranks values by lists: a judge puts a few of them into their order at once.

Lists of values of which none is known to be behind another are asked in rounds. What an order
implies is not asked: if a is before b and b before c, a is before c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

ListJudge: TypeAlias = "Callable[[Sequence[Sequence[int]]], Sequence[Sequence[int] | None]]"
"""Gives the places of each list in their order, which may lack some; None without an answer."""


@dataclass(slots=True)
class ListRanking:
    """The order of ``n`` values, as far as it is wanted, and how it was found."""

    n: int
    places: list[int] = field(default_factory=list)
    """The first places in their order; for the last places, the last one first."""
    lists: int = 0
    rounds: int = 0
    undecided: int = 0
    """Lists without an answer: the usual order of their values counts."""
    contradicted: int = 0
    """Pairs in an answer that contradict earlier answers, which count."""

    def __str__(self) -> str:
        """
        >>> print(ListRanking(100, [4, 1], lists=13, rounds=4, contradicted=1))
        2 of 100 values in order; 13 lists compared in 4 rounds, 1 pair contradicts others
        """
        wanted = "all" if len(self.places) == self.n else f"{len(self.places):,} of"
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds:,} rounds"
        undecided = f", {self.undecided:,} without an answer" if self.undecided else ""
        verb = "pair contradicts" if self.contradicted == 1 else "pairs contradict"
        cyclic = f", {self.contradicted:,} {verb} others" if self.contradicted else ""
        return (
            f"{wanted} {self.n:,} values in order; {self.lists:,} lists compared in {rounds}"
            f"{undecided}{cyclic}"
        )


class _Order:
    """The known part of an order: for each value, the values before and behind it, as bits."""

    def __init__(self, n: int) -> None:
        self.before = [0] * n
        self.behind = [0] * n
        self.contradicted = 0

    def knows(self, a: int, b: int) -> bool:
        return bool((self.before[a] | self.behind[a]) >> b & 1)

    def add(self, order: Sequence[int]) -> None:
        """Record that each item of ``order`` comes before those behind it, unless an earlier record
        contradicts it."""
        for end in range(1, len(order)):
            for start in range(end - 1, -1, -1):
                self._add(order[start], order[end])

    def _add(self, first: int, second: int) -> None:
        if self.before[first] >> second & 1:
            self.contradicted += 1
        elif not self.before[second] >> first & 1:
            above, below = self.before[first] | 1 << first, self.behind[second] | 1 << second
            for place in _bits(below):
                self.before[place] |= above
            for place in _bits(above):
                self.behind[place] |= below


def _bits(number: int) -> list[int]:
    found = []
    while number:
        lowest = number & -number
        found.append(lowest.bit_length() - 1)
        number ^= lowest
    return found


def list_ranking(
    n: int, judge: ListJudge, size: int, k: int | None, usual: Sequence[float]
) -> ListRanking:
    """The order of ``n`` values: the first ``k``, the last ``-k`` if it is negative, or all.

    Lists have at most ``size`` values. ``usual``: a number for each value, the lowest first: the
    order of those that the judge leaves undecided."""
    wanted = n if k is None else min(n, abs(k))
    descending = k is not None and k < 0
    found, order = ListRanking(n), _Order(n)
    sign = -1 if descending else 1
    ranked = sorted(range(n), key=lambda place: (sign * usual[place], sign * place))
    while len(found.places) < wanted:
        placed = sum(1 << place for place in found.places)
        ahead = {p: (order.before[p] & ~placed).bit_count() for p in ranked if not placed >> p & 1}
        first = [place for place, others in ahead.items() if not others]
        if len(first) == 1:
            found.places.append(first[0])
            continue
        left = wanted - len(found.places)
        lists = [first[i : i + size] for i in range(0, len(first), size)]
        if len(lists) > 1 and len(lists[-1]) == 1:  # one alone is no list
            lists.pop()
        if len(lists) == 1:
            lists[0] += _next(ahead, order, lists[0], left)[: size - len(lists[0])]
        found.rounds += 1
        found.lists += len(lists)
        for given, answer in zip(lists, judge(lists), strict=True):
            found.undecided += answer is None
            own = list(dict.fromkeys(place for place in answer or () if place in given))
            rest = [place for place in given if place not in own]
            order.add([*rest, *reversed(own)] if descending and own else [*own, *rest])
    found.contradicted = order.contradicted
    return found


def _next(ahead: dict[int, int], order: _Order, first: Sequence[int], left: int) -> list[int]:
    """Values that may be among the next ``left`` ones, those with the fewest before them first: a
    list that has room for more orders them, too."""
    open_places = [place for place, others in ahead.items() if 0 < others < left]
    open_places.sort(key=lambda place: ahead[place])
    return [p for p in open_places if any(not order.knows(p, other) for other in first)]
