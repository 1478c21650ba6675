"""Values of other tables with which groups are compared, as keys of the groups."""

from __future__ import annotations

from dataclasses import replace

from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.aggregates import aggregate, aggregation, by_more_keys
from blendfusion.planner.ir.builders import project
from blendfusion.planner.ir.joins import join_plans
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    below_projections,
    inline,
    is_volatile,
    substitute,
    through_projection,
    walk,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.needs.reads import read_of_subquery


def with_value_keys(plan: Rel) -> Plan | None:
    """``filter n > (SELECT max(y) FROM u)`` over groups, as ``filter n > v`` over groups by ``v``,
    too, which is a column of all rows; None of other relations."""
    if plan.kind != "filter" or not plan.has_subqueries or any(map(is_volatile, plan.exprs)):
        return None
    shown, groups = below_projections(plan.inputs[0])
    if not isinstance(groups, Rel) or groups.kind != "aggregate":
        return None
    agg, (columns, block) = aggregation(groups), through_projection(groups.inputs[0])
    values = dict.fromkeys(p for e in plan.exprs for p in walk(e) if isinstance(p, Node) and p.rels)
    if not agg.has_one_grouping or not isinstance(block, Block) or not block.calls_here:
        return None
    if not all(map(has_one_row, values)) or any(e.rels for e in shown):
        return None
    if any(map(asks_anything, (value.rels[0] for value in values))) and any(
        read_of_subquery(value, plan.exprs) != (Field(0),) for value in values
    ):
        return None  # less than the value is read of it
    n, width = len(agg.keys), block.source.width
    source = block.source
    for value in values:
        source = join_plans(source, value.rels[0], ())
    own = tuple(Field(width + i) for i in range(len(values)))
    below = replace(block, source=source, select=(*block.select, *own))
    rows = project(below, (*columns, *(Field(block.width + i) for i in range(len(values)))))
    keys = tuple(Field(len(columns) + i) for i in range(len(values)))
    new = aggregate(rows, by_more_keys(agg, keys))
    place = (*all_fields(n), *(Field(i) for i in range(n + len(values), new.width)))
    known: dict[Expr, Expr] = {value: Field(n + i) for i, value in enumerate(values)}
    terms = (inline(inline(e, shown), place) for e in plan.exprs)
    exprs = tuple(substitute(e, known.get) for e in terms)
    kept = replace(plan, inputs=(new,), exprs=exprs, width=new.width)
    return project(kept, tuple(inline(e, place) for e in shown))


def has_one_row(value: Node) -> bool:
    """Whether a subquery has one row with one value, whatever its table has."""
    message = ExpressionMessage.FromString(value.template).subquery
    if message.WhichOneof("subquery_type") != "scalar":
        return False
    below = below_projections(value.rels[0])[1]
    if not isinstance(below, Rel) or below.kind != "aggregate" or value.rels[0].width != 1:
        return False
    agg = aggregation(below)
    return not agg.keys and agg.one_group_a_row
