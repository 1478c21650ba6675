"""Builds window functions, and reads their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from substrait.proto import AggregateFunction
from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.builders import literal, sides_of
from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import Direction, Expr, Field, Node, has_window, windows

NUMBERS = ("window:row_number", "window:rank", "window:dense_rank")
OF_ONE_ROW = ("first_value", "last_value", "nth_value", "lag", "lead")
"""Functions that have the value of one row."""
_OF_NEIGHBOURS = ("window:lag", "window:lead")
_AT_MOST = {"lte": 0, "lt": -1, "equal": 0}
"""Comparisons of a rank with a number that hold for first ranks only, and what to add to it."""


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
    to the last one with the keys of the row; all of them without keys."""
    message = ExpressionMessage()
    function = message.window_function
    function.bounds_type = ExpressionMessage.WindowFunction.BOUNDS_TYPE_RANGE
    function.lower_bound.unbounded.SetInParent()
    (function.upper_bound.current_row if keys else function.upper_bound.unbounded).SetInParent()
    for _ in partitions:
        function.partitions.add()
    for direction in directions:
        key = function.sorts.add()
        key.expr.SetInParent()
        key.direction = direction
    for _ in args:
        function.arguments.add().value.SetInParent()
    return Node(f"window:{name}", serialize(message), (*partitions, *keys, *args))


def numbering(expr: Expr) -> WindowOrder | None:
    """The order in which ``expr`` numbers the rows of each partition; None if it does not."""
    return order_of(expr) if isinstance(expr, Node) and expr.name in NUMBERS else None


def reads_partition(window: Node) -> bool:
    """Whether a window reads one argument of all rows of a partition."""
    function = ExpressionMessage.FromString(window.template).window_function
    bounds = (function.lower_bound.WhichOneof("kind"), function.upper_bound.WhichOneof("kind"))
    whole = bounds == ("unbounded", "unbounded") and not function.sorts
    distinct = function.invocation == AggregateFunction.AGGREGATION_INVOCATION_DISTINCT
    return whole and not distinct and len(window.children) == len(function.partitions) + 1


def first_ranks(term: Expr) -> tuple[Expr, int]:
    """(a rank, the number of first ranks for which ``term`` may hold; 0 if it tells none)"""
    if not isinstance(term, Node) or not term.children:
        return term, 0
    if term.name == "or":  # a short IN is one
        rank, most = first_ranks(term.children[0])
        for child in term.children[1:]:
            own, wanted = first_ranks(child) if most else (rank, 0)
            most = max(most, wanted) if wanted and own == rank else 0
        return rank, most
    if term.name == "singular_or_list":
        rank, *others = term.children
        whole = [number for number in map(literal, others) if type(number) is int]
        return rank, max(whole) if len(whole) == len(others) else 0
    for rank, other, name in sides_of(term):
        number = literal(other)
        if name in _AT_MOST and type(number) is int:
            return rank, number + _AT_MOST[name]
    return term, 0


def key_places(window: Node) -> range:
    """The places of the keys of a window's order among its children."""
    order = order_of(window)
    n = len(order.partitions)
    return range(n, n + len(order.keys))


def argument_place(window: Node) -> int | None:
    """The place of the argument among the children of a window that chooses a row."""
    return key_places(window).stop if window.name.removeprefix("window:") in OF_ONE_ROW else None


def default_of(window: Node) -> Expr | None:
    """The value of ``lag`` and ``lead`` where there is no row; None without one."""
    default = window.children[key_places(window).stop + 2 :]
    return default[0] if default and window.name in _OF_NEIGHBOURS else None


def with_argument(window: Node, new: Expr) -> Node:
    """A window that chooses a row, of ``new``, and without a default."""
    place, template = key_places(window).stop, window.template
    before, behind = window.children[:place], window.children[place + 1 :]
    if default_of(window) is not None:
        message = ExpressionMessage.FromString(template)
        del message.window_function.arguments[2:]
        template, behind = serialize(message), behind[:1]
    return replace(window, template=template, children=(*before, new, *behind))


def without_windows(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression that windows read, and those beside them."""
    if not has_window(expr):
        yield expr
        return
    for part in expr.children:
        yield from without_windows(part)


def fields_outside(expr: Expr) -> Iterator[Field]:
    """The columns that an expression reads outside of windows."""
    if isinstance(expr, Field):
        yield expr
    elif expr not in windows(expr)[:1]:
        for part in expr.children:
            yield from fields_outside(part)
