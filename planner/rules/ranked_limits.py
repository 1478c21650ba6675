"""Tells a call that ranks values how many ranks a limit or a filter wants.

before: ``limit k`` over ``sort by prefers(x)``; ``filter r <= k`` over ``prefers(x) AS r``, or over
        ``row_number() OVER (ORDER BY prefers(x)) AS r``
after:  the same over ``prefers(x, k)``; ``-k`` where the order descends
safe:   the first k rows have the first k ranks at most, since each rank belongs to one value, and
        all other values share a rank behind these. Nothing between the limit and the call drops
        rows: predicates of the call's block must stand in its domain, too. Nothing but the sort,
        the filter and windows that number rows in this order reads the ranks of the other rows.
"""

from __future__ import annotations

from dataclasses import replace

from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.builders import fetch_bounds
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    conjuncts,
    has_window,
    substitute,
)
from blendfusion.planner.ir.ranked_rows import in_domain, keeps_rows
from blendfusion.planner.ir.sorts import DESCENDING
from blendfusion.planner.ir.windows import NUMBERS, first_ranks, order_of
from blendfusion.udfs.declare.top_ranks import with_ranks


def ranked_limits(plan: Plan) -> Plan:
    if isinstance(plan, Rel) and plan.kind == "filter":
        return _ranked_filter(plan)
    if not isinstance(plan, Rel) or plan.kind != "fetch":
        return plan
    offset, count = fetch_bounds(plan)
    if not count:
        return plan
    below = _below(plan.inputs[0], offset + count)
    return plan if below is None else plan.with_inputs(below)


def _ranked_filter(plan: Rel) -> Plan:
    for term in conjuncts(plan.exprs[0]):
        rank, wanted = first_ranks(term)
        if wanted < 1:
            continue
        if isinstance(rank, Field):
            source = _limit_numbers(plan.inputs[0], rank.index, wanted)
            if source is not None:
                return plan.with_inputs(source)
        limited = _limit_call(rank, wanted)
        if limited is not None:
            return replace(plan, exprs=(_in_place(plan.exprs[0], rank, limited),))
    return plan


def _limit_numbers(plan: Plan, index: int, wanted: int) -> Plan | None:
    """``plan`` with the call limited whose ranks are the column ``index``, or by whose order rows
    are numbered there; None if it is neither."""
    if not isinstance(plan, Rel) or plan.kind != "project":
        return _column(plan, index, wanted)
    own = plan.exprs[index]
    if not any(map(has_window, plan.exprs)):
        if isinstance(own, Field):
            below = _limit_numbers(plan.inputs[0], own.index, wanted)
            return None if below is None else plan.with_inputs(below)
        return _column(plan, index, wanted)
    order = _order(own) or (own if isinstance(own, Field) else None, False)
    column, descending = order
    if column is None or not all(_reads_alike(e, column, order) for e in plan.exprs):
        return None
    below = _column(plan.inputs[0], column.index, -wanted if descending else wanted)
    return None if below is None else plan.with_inputs(below)


def _order(expr: Expr) -> tuple[Field | None, bool] | None:
    """(the column by which ``expr`` numbers all rows, whether it descends); None for another
    expression."""
    if not isinstance(expr, Node) or expr.name not in NUMBERS:
        return None
    order = order_of(expr)
    key = order.keys[0] if order.keys else None
    if order.partitions or not isinstance(key, Field):
        return None
    return key, order.directions[0] in DESCENDING


def _reads_alike(expr: Expr, column: Field, order: tuple[Field | None, bool]) -> bool:
    """Whether ``expr`` has the same value for the first rows, whatever the ranks of others."""
    return not has_window(expr) or _order(expr) == (column, order[1])


def _below(plan: Plan, wanted: int) -> Plan | None:
    """``plan`` with its sort limited; None if there is nothing to limit."""
    if isinstance(plan, Rel) and plan.kind == "sort":
        return _limit_sort(plan, wanted)
    if not keeps_rows(plan):
        return None
    assert isinstance(plan, Rel | Block)
    below = _below(plan.inputs[0], wanted)
    return None if below is None else plan.with_inputs(below)


def _limit_sort(sort: Rel, wanted: int) -> Plan | None:
    direction = RelMessage.FromString(sort.template).sort.sorts[0].direction
    ranks = -wanted if direction in DESCENDING else wanted
    key = sort.exprs[0]
    if isinstance(key, Field):
        source = _column(sort.inputs[0], key.index, ranks)
        return None if source is None else sort.with_inputs(source)
    found = _limit_call(key, ranks)
    return None if found is None else replace(sort, exprs=(found, *sort.exprs[1:]))


def _column(plan: Plan, index: int, ranks: int) -> Plan | None:
    """``plan`` with the call of one of its columns limited; None if the column is none."""
    if not isinstance(plan, Block) and not keeps_rows(plan):
        return None
    assert isinstance(plan, Rel | Block)
    exprs = plan.select if isinstance(plan, Block) else plan.exprs
    own = exprs[index]
    if isinstance(own, Field):
        if not keeps_rows(plan):
            return None
        below = _column(plan.inputs[0], own.index, ranks)
        return None if below is None else plan.with_inputs(below)
    new = _limit_call(own, ranks)
    if new is None or not (keeps_rows(plan) or in_domain(plan, new)):
        return None
    changed = tuple(_in_place(e, own, new) for e in exprs)
    return (
        replace(plan, select=changed) if isinstance(plan, Block) else replace(plan, exprs=changed)
    )


def _in_place(expr: Expr, own: Expr, new: Expr) -> Expr:
    return substitute(expr, lambda part: new if part == own else None)


def _limit_call(expr: Expr, ranks: int) -> Ask | None:
    if not isinstance(expr, Ask):
        return None
    call = with_ranks(expr.call, ranks)
    return None if call is None else replace(expr, call=call)
