"""How much a run tries: the random cases without ``--cases``, and what waits for ``make long``."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

RANDOM_CASES = 1000


def long_after(number: int, values: Iterable[object]) -> list[object]:
    """The parameters of a test; those behind the first so many are part of ``make long``."""
    return [
        value if place < number else pytest.param(value, marks=pytest.mark.long)
        for place, value in enumerate(values)
    ]
