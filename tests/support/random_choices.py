"""Where random queries come from: a source of numbers that Hypothesis or a seed stands behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices:
    """Choices from ``below(n)``, a number from 0 to n - 1. Smaller numbers are simpler choices."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self.below = below

    @classmethod
    def drawn(cls, draw: st.DrawFn) -> Choices:
        """Choices that Hypothesis makes, and shrinks when a test fails."""
        return cls(lambda n: draw(_numbers_below(n)))

    @classmethod
    def seeded(cls, seed: int) -> Choices:
        return cls(random.Random(seed).randrange)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        return options[self.below(len(options))]

    def weighted(self, **weights: int) -> str:
        """One of the names, as often as their weights say; the first is the simplest."""
        number = self.below(sum(weights.values()))
        for name, weight in weights.items():
            if number < weight:
                return name
            number -= weight
        raise AssertionError("unreachable")

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases; False is simpler."""
        return self.below(100) >= 100 - percent

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """One to ``most`` of the options, each at most once."""
        left = list(options)
        wanted = 1 + self.below(min(most, len(left)))
        return [left.pop(self.below(len(left))) for _ in range(wanted)]


@cache
def _numbers_below(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)
