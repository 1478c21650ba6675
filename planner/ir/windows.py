"""Builds window functions."""

from __future__ import annotations

from collections.abc import Sequence

from substrait.proto import Expression as ExpressionMessage
from substrait.proto import SortField

from blendfusion.planner.ir.messages import serialized
from blendfusion.planner.ir.nodes import Expr, Node


def window(
    name: str,
    partitions: Sequence[Expr],
    keys: Sequence[Expr],
    directions: Sequence[SortField.SortDirection.ValueType],
    args: Sequence[Expr] = (),
) -> Node:
    """``name(args) OVER (PARTITION BY partitions ORDER BY keys)``, over the rows of a partition up
    to the last one with the keys of the row."""
    message = ExpressionMessage()
    function = message.window_function
    function.bounds_type = ExpressionMessage.WindowFunction.BOUNDS_TYPE_RANGE
    function.lower_bound.unbounded.SetInParent()
    function.upper_bound.current_row.SetInParent()
    for _ in partitions:
        function.partitions.add()
    for direction in directions:
        key = function.sorts.add()
        key.expr.SetInParent()
        key.direction = direction
    for _ in args:
        function.arguments.add().value.SetInParent()
    return Node(f"window:{name}", serialized(message), (*partitions, *keys, *args))
