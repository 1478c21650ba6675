"""Builds sorts, and reads their directions."""

from __future__ import annotations

from collections.abc import Sequence

from substrait.proto import Rel as RelMessage
from substrait.proto import SortField

from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import Direction, Expr, Plan, Rel

ASC = SortField.SORT_DIRECTION_ASC_NULLS_LAST
DESC = SortField.SORT_DIRECTION_DESC_NULLS_LAST
"""Both with NULL last."""
DESCENDING = (SortField.SORT_DIRECTION_DESC_NULLS_FIRST, DESC)
_PAIRS = (
    (ASC, SortField.SORT_DIRECTION_DESC_NULLS_FIRST),
    (DESC, SortField.SORT_DIRECTION_ASC_NULLS_FIRST),
)
_REVERSED = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}


def sorted_by(source: Plan, keys: Sequence[Expr], directions: Sequence[Direction] = ()) -> Rel:
    """The rows of ``source`` in the order of ``keys``; those without a direction ascend, NULL
    last."""
    message = RelMessage()
    message.sort.input.SetInParent()
    missing = len(keys) - len(directions)
    for direction in (*directions, *[ASC] * missing):
        key = message.sort.sorts.add()
        key.expr.SetInParent()
        key.direction = direction
    return Rel("sort", serialize(message), (source,), tuple(keys), source.width)


def directions_of(sort: Rel) -> tuple[Direction, ...]:
    return tuple(key.direction for key in RelMessage.FromString(sort.template).sort.sorts)


def reverse(direction: Direction) -> Direction:
    """The direction in which the last row comes first."""
    return _REVERSED[direction]
