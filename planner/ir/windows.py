"""Builds window functions, and reads their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.messages import serialized
from blendfusion.planner.ir.nodes import Expr, Node
from blendfusion.planner.ir.sorts import Direction


@dataclass(frozen=True, slots=True)
class WindowOrder:
    """The partitions of a window, and the order of the rows of each."""

    partitions: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    directions: tuple[Direction, ...]


def order_of(window: Node) -> WindowOrder:
    function = ExpressionMessage.FromString(window.template).window_function
    n = len(function.partitions)
    directions = tuple(key.direction for key in function.sorts)
    return WindowOrder(window.children[:n], window.children[n : n + len(directions)], directions)


def window(
    name: str,
    partitions: Sequence[Expr],
    keys: Sequence[Expr],
    directions: Sequence[Direction],
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
