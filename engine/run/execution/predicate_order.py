"""The order of a block's model predicates: by statistics from before the run, then by its rows.

The predicate that drops the most rows per cost goes first, and the next sees its survivors. At
first, earlier answers, the lengths of values and prices tell what to expect; from the first chunk
on, the rows so far do, and the order is revised after every chunk. It does not depend on time, so
the same data, model and stored answers give the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blendfusion.run.observe.progress import count_noun

_MARGIN = 1.5
"""How much larger the expected rank of a predicate must be to come before one that is written
before it."""


@dataclass(frozen=True, slots=True)
class Prior:
    """The expectations of a predicate before any row."""

    pass_rate: float
    """The share of the rows that it will pass."""
    weight: float
    """As how many rows that counts beside those that come."""
    cost: float
    """The cost of a row without a stored answer: money, or tokens."""
    each: float
    """The cost of a value that a user's function computes, beside that of what it asks."""
    why: str
    """The text that says so."""


@dataclass(slots=True)
class PredicateCounts:
    """The counts of one predicate: rows in, rows that passed, tokens, and the cost in money."""

    rows_in: int = 0
    rows_out: int = 0
    rows_free: int = 0
    """The rows in that stored answers decided."""
    tokens: int = 0
    cost: float = 0.0
    computed: int = 0
    """The values that users' functions computed."""

    @property
    def pass_rate(self) -> float:
        return self.rows_out / self.rows_in if self.rows_in else 1.0

    @property
    def cost_text(self) -> str:
        """The cost of a row so far."""
        tokens = f"{self.tokens / self.rows_in if self.rows_in else 0.0:.1f} tokens a row"
        return (
            f"{count_noun(self.computed, 'value')} computed, {tokens}" if self.computed else tokens
        )

    @property
    def is_free(self) -> bool:
        """Whether nothing was asked or computed."""
        return not self.tokens and not self.computed


class Order:
    """The order of predicates: as written, or by priors, at first; by rank after some rows."""

    def __init__(self, n: int, *, adaptive: bool) -> None:
        self.seen = [PredicateCounts() for _ in range(n)]
        self.places = list(range(n))
        self.adaptive = adaptive
        self.priors: Sequence[Prior] = ()
        """The expectations of each predicate before the first row; () for none."""
        self.in_money = False
        """Whether costs are money, because all models have a price, not tokens."""
        self.first = list(range(n))
        """The order of the first rows."""

    def expect(self, priors: Sequence[Prior], *, in_money: bool) -> None:
        """Order the predicates by their statistics; as written if that makes little difference."""
        self.priors, self.in_money = priors, in_money
        places: list[int] = []
        for i in range(len(priors)):
            rank = self.rank(i)
            later = (n for n, j in enumerate(places) if rank > _MARGIN * self.rank(j))
            places.insert(next(later, len(places)), i)
        self.places, self.first = places, list(places)

    def revise(self) -> None:
        """Sort the predicates by rank."""
        if self.adaptive:
            self.places.sort(key=lambda i: (-self.rank(i), i))

    def rank(self, i: int) -> float:
        """The share of the rows that predicate ``i`` drops, by the rows so far and the prior, per
        cost of an asked row (Hellerstein and Stonebraker 1993)."""
        seen = self.seen[i]
        paid = seen.rows_in - seen.rows_free
        spent = seen.cost if self.in_money else seen.tokens
        if not self.priors:
            dropped = 1.0 - seen.pass_rate
            cost = spent / paid if paid else 0.0
        else:
            prior = self.priors[i]
            passed = seen.rows_out + prior.pass_rate * prior.weight
            dropped = 1.0 - passed / (seen.rows_in + prior.weight)
            spent += seen.computed * prior.each
            cost = spent / paid if paid and spent else prior.cost
        if not cost:  # no question is left
            return float("inf") if dropped else 0.0
        return dropped / cost
