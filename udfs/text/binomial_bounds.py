"""Confidence bounds of a share, from a sample."""

from __future__ import annotations

from math import comb

CONFIDENCE = 0.95


def at_most(found: int, sampled: int) -> float:
    """The upper bound of a share at 95 % confidence if ``found`` of ``sampled`` have a property, by
    Clopper and Pearson (1934), one-sided. 1.0 without a sample.

    >>> [round(at_most(found, 20), 2) for found in (0, 1, 20)]
    [0.14, 0.22, 1.0]
    """
    if found >= sampled:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        so_few = sum(
            comb(sampled, i) * share**i * (1 - share) ** (sampled - i) for i in range(found + 1)
        )
        low, high = (share, high) if so_few > 1 - CONFIDENCE else (low, share)
    return high
