"""The order of a block's model predicates, learned while it runs.

The predicate that drops the most rows per cost goes first, and the next sees its survivors. Both
are measured on the rows so far: the order is revised after every chunk. It does not depend on time,
so the same data and model give the same order.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Seen:
    """The counts of one predicate: rows in, rows that passed, and tokens."""

    rows_in: int = 0
    rows_out: int = 0
    tokens: int = 0

    @property
    def pass_rate(self) -> float:
        return self.rows_out / self.rows_in if self.rows_in else 1.0

    @property
    def tokens_per_row(self) -> float:
        return self.tokens / self.rows_in if self.rows_in else 0.0

    @property
    def rank(self) -> float:
        """Share of the rows dropped per token spent (Hellerstein and Stonebraker 1993)."""
        dropped = 1.0 - self.pass_rate
        if not self.tokens:  # free: answered from the cache
            return float("inf") if dropped else 0.0
        return dropped / self.tokens_per_row


class Order:
    """The order of predicates: as written at first, by rank after some rows."""

    def __init__(self, n: int, *, adaptive: bool) -> None:
        self.seen = [Seen() for _ in range(n)]
        self.places = list(range(n))
        self.adaptive = adaptive

    def revise(self) -> None:
        """Sort the predicates by rank; those without rows stay at the end."""
        if self.adaptive:
            self.places.sort(key=lambda i: (-self.seen[i].rank, i))
