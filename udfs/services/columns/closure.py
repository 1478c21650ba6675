"""The closure of answers about pairs: same and same are same, same and different are different."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

Pair: TypeAlias = tuple[int, int]
"""Two positions, the smaller one first."""


class Closure:
    """Sets of positions that are the same thing, and the pairs of sets that differ. Sets that are
    fixed differ from one another, without a pair for each two of them."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))
        self._others: list[set[int]] = [set() for _ in range(size)]
        """For the root of a set, the roots of the sets that differ from it."""
        self._fixed: set[int] = set()
        """The roots of fixed sets."""

    def root(self, place: int) -> int:
        parents = self._parents
        while parents[place] != place:
            parents[place] = place = parents[parents[place]]
        return place

    def implication(self, a: int, b: int) -> bool | None:
        """Whether both are the same, if the answers so far imply it; else None."""
        a, b = self.root(a), self.root(b)
        if a == b:
            return True
        if a in self._fixed and b in self._fixed:
            return False
        return False if b in self._others[a] else None

    def same(self, a: int, b: int) -> None:
        a, b = self.root(a), self.root(b)
        if a == b:
            return
        if len(self._others[a]) < len(self._others[b]):
            a, b = b, a
        self._parents[b] = a
        for other in self._others[b]:
            self._others[other].discard(b)
            self._others[other].add(a)
        self._others[a] |= self._others[b]
        self._others[b] = set()
        if b in self._fixed:
            self._fixed.add(a)

    def different(self, a: int, b: int) -> None:
        a, b = self.root(a), self.root(b)
        self._others[a].add(b)
        self._others[b].add(a)

    def fix(self, place: int) -> None:
        """Fix the set of ``place``: others join it, but no other fixed set is the same."""
        self._fixed.add(self.root(place))

    def copy(self) -> Closure:
        made = Closure(0)
        made._parents = list(self._parents)
        made._others = [set(others) for others in self._others]
        made._fixed = set(self._fixed)
        return made

    def sets(self) -> list[list[int]]:
        """The positions by sets, in ascending order."""
        found: dict[int, list[int]] = {}
        for place in range(len(self._parents)):
            found.setdefault(self.root(place), []).append(place)
        return list(found.values())


def rounds(pairs: Sequence[Pair], closure: Closure) -> Iterator[list[Pair]]:
    """The pairs to ask about, in rounds. After each round the caller adds the answers to
    ``closure``. Pairs that earlier answers imply are left out. A pair waits for a later round if
    answers of "the same" to the pairs before it would imply it."""
    waiting = [pair for pair in pairs if closure.implication(*pair) is None]
    while waiting:
        hopeful = closure.copy()
        now: list[Pair] = []
        later: list[Pair] = []
        for pair in waiting:
            if hopeful.implication(*pair) is None:
                now.append(pair)
                hopeful.same(*pair)
            else:
                later.append(pair)
        yield now
        waiting = [pair for pair in later if closure.implication(*pair) is None]
