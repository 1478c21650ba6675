"""Asks about the rows of each group in order, until enough of them pass.

before: ``filter n <= k`` over ``row_number() OVER (PARTITION BY g ORDER BY d) AS n`` over
        ``block(t) where llm(x)``; ``aggregate first_value(v ORDER BY d) by g``, which DISTINCT ON
        is, last_value or ``aggregate max(d) by g``, over the block
after:  the same over the block over ``sort by d`` over ``t`` with a limit of k for each ``g``; of
        an aggregate, k = 1
safe:   the first k rows of a group that pass are among the rows of the block, which reads its
        source in this order. All that is read of the others is how many come before a row. A NaN
        is the largest number, which DataFusion's max of a group leaves to the order of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blendfusion.planner.ir.aggregates import Measure, aggregation, order_of_first
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    conjuncts,
    has_window,
    inline,
    is_volatile,
    may_move,
    needs_model,
    windows,
)
from blendfusion.planner.ir.sorts import ASC, DESC, Direction, sorted_by
from blendfusion.planner.rules.extreme_values import among_equal
from blendfusion.planner.rules.first_rows import below_projections, over
from blendfusion.planner.rules.ranked_limits import first_ranks, numbering

_OF_EXTREME = {
    "max": DESC,
    "min": ASC,
    "bool_or": DESC,
    "bool_and": ASC,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The first ``count`` rows of each group by ``keys``, over the columns of a block."""

    groups: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    directions: tuple[Direction, ...]
    count: int = 1


def first_of_groups(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    if plan.kind == "filter":
        return _filter(plan)
    return _aggregate(plan) if plan.kind == "aggregate" else plan


def _filter(plan: Rel) -> Plan:
    columns, numbered = below_projections(plan.inputs[0])
    if not isinstance(numbered, Rel) or not any(map(has_window, numbered.exprs)):
        return plan
    for term in conjuncts(plan.exprs[0]):
        number, count = first_ranks(inline(term, columns))
        if count < 1 or not isinstance(number, Field):
            continue
        own = numbered.exprs[number.index]
        order = numbering(own)
        if order is None or not isinstance(own, Node) or own.name != "window:row_number":
            continue
        if not all(numbering(w) == order for e in numbered.exprs for w in windows(e)):
            continue
        wanted = Wanted(order.partitions, order.keys, order.directions, count)
        new = with_first(numbered.inputs[0], wanted)
        if new is not None:
            return plan.with_inputs(over(plan.inputs[0], numbered, numbered.with_inputs(new)))
    return plan


def _aggregate(plan: Rel) -> Plan:
    agg = aggregation(plan)
    if not agg.one_group_a_row or not agg.measures or not isinstance(plan.inputs[0], Block):
        return plan
    orders = {order_of_value(measure) for measure in agg.measures}
    order = orders.pop() if len(orders) == 1 else None
    if order is None or (agg.measures[0].name in _OF_EXTREME and order[0][0] in agg.keys):
        return plan  # of equal rows, any one is enough
    new = with_first(plan.inputs[0], Wanted(agg.keys, *order))
    return plan if new is None else plan.with_inputs(new)


def order_of_value(measure: Measure) -> tuple[tuple[Expr, ...], tuple[Direction, ...]] | None:
    """The order of whose first row an aggregate is the value; None for others."""
    if measure.filter is not None or not measure.args:
        return None
    if measure.name in _OF_EXTREME and not measure.n_sorts:
        return measure.args[:1], (_OF_EXTREME[measure.name],)
    return order_of_first(measure)


def with_first(plan: Plan, wanted: Wanted) -> Plan | None:
    """A block, perhaps below projections, with a limit for each group; None if that spares
    nothing."""
    columns, block = below_projections(plan)
    if not isinstance(block, Block) or block.once or not may_move(block):
        return None
    columns = tuple(inline(e, block.select) for e in columns)
    groups, keys = (
        tuple(inline(e, columns) for e in part) for part in (wanted.groups, wanted.keys)
    )
    if not any(map(needs_model, block.where)):
        return None
    if any(needs_model(e) or is_volatile(e) or e.rels for e in (*groups, *keys)):
        return None
    order: dict[Expr, Direction] = {}
    for key, direction in zip(keys, wanted.directions, strict=True):
        if key not in groups:
            order.setdefault(key, direction)
    for key in among_equal(block):
        order.setdefault(key, ASC)
    source = sorted_by(block.source, [*order], [*order.values()]) if order else block.source
    select = (*block.select, *(g for g in dict.fromkeys(groups) if g not in block.select))
    each = tuple(select.index(group) for group in groups) or None
    new = replace(block, source=source, select=select, count=wanted.count, each=each)
    return over(plan, block, new)
