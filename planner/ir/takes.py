"""The first rows of a relation that a query reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blendfusion.planner.ir.nodes import Expr
from blendfusion.planner.ir.sorts import Direction


@dataclass(frozen=True, slots=True)
class Take:
    """The first ``count`` rows in an order, of all rows or of each combination of values of
    ``per``."""

    count: int
    per: tuple[Expr, ...] = ()
    order: tuple[Expr, ...] = ()
    """No key: that in which the rows come."""
    directions: tuple[Direction, ...] = ()
    ties: int = 0
    """The number of first keys of the order in which further rows that equal the last one count,
    too."""
    dense: bool = False
    """Whether ``count`` counts combinations of values of the order instead of rows."""

    @property
    def keys(self) -> tuple[tuple[Expr, Direction], ...]:
        """The order, each key with its direction."""
        return tuple(zip(self.order, self.directions, strict=True))

    def by(self, keys: Sequence[tuple[Expr, Direction]]) -> Take:
        """This take in another order."""
        return replace(self, order=tuple(e for e, _ in keys), directions=tuple(d for _, d in keys))
