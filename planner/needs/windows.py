"""The rows that windows need for their values in the rows that are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.nodes import Expr, Node, Rel, Take, has_window, inline, windows
from blendfusion.planner.ir.sorts import ASC
from blendfusion.planner.ir.windows import NUMBERS, WindowOrder, numbering, order_of
from blendfusion.planner.needs.need import (
    ALL,
    Key,
    Need,
    change_each,
    cut,
    first_keys,
    is_other,
    without,
)

_WINDOW = ExpressionMessage.WindowFunction
_BEFORE = (*NUMBERS, "window:lag")
"""Windows whose value in a row depends on rows before it in their order alone."""
_OF_FRAMES = ("sum", "avg", "count", "min", "max", "first_value", "last_value", "nth_value")


def below_windows(plan: Rel, need: Need) -> Need:
    """The rows below a projection with windows that are read of its input."""
    takes = [*_of_ranks(plan, need)]
    if need.ranks and not takes:
        return ALL
    for take in need.takes:
        own = _over_windows(take, plan.exprs)
        if own is None:
            break
        takes.append(own)
        if own.ties < take.ties or (own.ties and not take.ties):
            break  # of more rows, as in ``change_each``
    own_windows = [w for e in plan.exprs for w in windows(e) if isinstance(w, Node)]

    def with_all_rows(take: Take) -> Take | None:
        own: Take | None = take
        for window in own_windows:
            own = None if own is None else _with_rows_of(own, window)
        return own

    return Need(change_each(takes, with_all_rows))


def _of_ranks(plan: Rel, need: Need) -> Sequence[Take]:
    """The take of the first column that numbers rows."""
    for rank, count in need.ranks:
        own = inline(rank, plan.exprs)
        order = numbering(own)
        if (
            order is None
            or not isinstance(own, Node)
            or (not order.keys and not _is_row_number(own))
        ):
            continue
        ties = 0 if _is_row_number(own) else len(order.keys)
        dense = own.name == "window:dense_rank"
        return [Take(count, order.partitions, order.keys, order.directions, ties, dense)]
    return []


def _is_row_number(window: Node) -> bool:
    return window.name == "window:row_number"


def _over_windows(take: Take, exprs: tuple[Expr, ...]) -> Take | None:
    """``take`` over the input of windows; without an order, in that of the windows."""
    if not take.order and not take.per:
        any_order = _any_order([w for e in exprs for w in windows(e) if isinstance(w, Node)])
        return take.by(any_order) if any_order else None
    keys: tuple[Key, ...] = ()
    ties = 0
    for i, (key, direction) in enumerate(take.keys, 1):
        own = inline(key, exprs)
        order = numbering(own)
        if order is None or direction != ASC or not {*order.partitions} <= {e for e, _ in keys}:
            keys = (*keys, (own, direction))
        else:
            keys = (*keys, *_keys(order))
        ties = len(keys) if i <= take.ties else ties
        if order is not None and isinstance(own, Node) and _is_row_number(own):
            break  # no two rows of a partition have the same number
    per = tuple(inline(e, exprs) for e in take.per)
    return cut(replace(take.by(keys), per=per, ties=ties), lambda e: has_window(e) or is_other(e))


def _any_order(found: Sequence[Node]) -> tuple[Key, ...]:
    """An order in which the first rows have what the windows read of others."""
    for window in found:
        order = order_of(window)
        keys = (*((e, ASC) for e in order.partitions), *_keys(order))
        if keys:
            return keys
    return ()


def _keys(order: WindowOrder) -> tuple[Key, ...]:
    return tuple(zip(order.keys, order.directions, strict=True))


def _with_rows_of(take: Take, window: Node) -> Take | None:
    """``take`` with the rows, too, by which a window has its value in its rows; None if these are
    all."""
    order, reach = order_of(window), _reach(window)
    if not {*take.per} <= {*order.partitions}:
        return None
    if take.dense and not take.per and {*take.order} <= {*order.partitions}:
        return take  # whole partitions
    if reach == "partition":
        # A partition that has one of the rows comes as a whole.
        n = next(
            (i for i, e in enumerate(take.order) if e not in order.partitions), len(take.order)
        )
        if take.per or not n:
            return None
        whole = first_keys(take, n)
        return None if whole is None else replace(whole, ties=min(whole.ties or n, n))
    wanted, own = (without(keys, order.partitions) for keys in (_keys(order), take.keys))
    n = next((i for i, (a, b) in enumerate(zip(own, wanted, strict=False)) if a != b), len(own))
    if n < len(own) and n < len(wanted):  # rows that are equal up to there come in any order
        equal_so_far = first_keys(take, take.keys.index(own[n]))
        if equal_so_far is None:
            return None
        take, own = equal_so_far, own[:n]
    if len(own) < len(wanted):
        if take.dense:
            return None
        take = take.by((*take.keys, *wanted[len(own) :]))
    if reach == "peers":
        equal = {*order.partitions, *order.keys}
        n = next((i for i, e in enumerate(take.order) if e not in equal), len(take.order))
        if not n:
            return None
        take = replace(take, ties=min(take.ties or n, n))
    return take


def _reach(window: Node) -> str:
    """The rows of its partition on which the value of a window in a row depends: those before it,
    those and its peers, or all."""
    name = window.name
    if name in _BEFORE:
        return "rows" if name != "window:lag" or _is_back(window) else "partition"
    function = ExpressionMessage.FromString(window.template).window_function
    upper = function.upper_bound.WhichOneof("kind")
    if name.removeprefix("window:") not in _OF_FRAMES or not function.sorts:
        return "partition"
    if upper not in ("current_row", "preceding"):
        return "partition"
    return "rows" if function.bounds_type == _WINDOW.BOUNDS_TYPE_ROWS else "peers"


def _is_back(window: Node) -> bool:
    """Whether ``lag`` has no offset, which may be negative."""
    order = order_of(window)
    return len(window.children) - len(order.partitions) - len(order.keys) == 1
