"""The parts of groups of rows that a query reads: tests, an order with a limit, columns."""

from __future__ import annotations

from dataclasses import dataclass

from blendfusion.planner.ir.aggregates import Measure
from blendfusion.planner.ir.nodes import Expr
from blendfusion.planner.ir.sorts import Direction


@dataclass(frozen=True, slots=True)
class GroupNeed:
    """The parts that are read of the groups that an aggregate makes of a block's rows.

    The first ``n_keys`` columns of the block are the keys. ``measures`` read its columns; literals
    beside them. ``tests``, ``order`` and ``shown`` are expressions over the columns of the groups:
    the keys, then the measures.
    """

    n_keys: int
    measures: tuple[Measure, ...]
    tests: tuple[Expr, ...] = ()
    """A group of which one of these is not TRUE is read no further."""
    order: tuple[Expr, ...] = ()
    """The order of the others in which a limit counts them; none: any."""
    directions: tuple[Direction, ...] = ()
    offset: int = 0
    count: int | None = None
    """The limit; None: all groups."""
    shown: tuple[Expr, ...] = ()
    """The expressions that are read of the groups within the limit. Each needs one value."""

    @property
    def has_limit(self) -> bool:
        return self.count is not None
