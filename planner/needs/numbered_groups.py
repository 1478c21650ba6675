"""Groups that are numbered by a value, of which the first are read."""

from __future__ import annotations

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import filter_rows, function, integer_literal, project
from blendfusion.planner.ir.lineage import answer_columns, may_be_real
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    below_projections,
    fields,
    inline,
    is_volatile,
)
from blendfusion.planner.ir.sorts import ASC, DESC
from blendfusion.planner.ir.windows import window

DIRECTIONS = {"max": DESC, "min": ASC}
"""The orders of whose first row an aggregate is the value."""


def may_be_numbered(plan: Plan, value: Expr, partitions: tuple[Expr, ...] = ()) -> bool:
    """Whether ``plan`` has groups that can be numbered by ``value`` in parts of equal keys before
    all answers are known."""
    columns, below = below_projections(plan)
    groups = _aggregate_below(below)
    if groups is None or not aggregation(groups).one_group_a_row:
        return False
    own = inline(value, columns)
    n = len(aggregation(groups).keys)
    if is_volatile(own) or own.rels or may_be_real(own, below):
        return False
    if not answer_columns(groups).isdisjoint(range(n)) or any(map(is_volatile, partitions)):
        return False
    return all(fields(inline(e, columns)) <= {*range(n)} for e in partitions)


def _aggregate_below(plan: Plan) -> Rel | None:
    """The aggregate below filters of groups."""
    while isinstance(plan, Rel) and plan.kind == "filter":
        plan = plan.inputs[0]
    return plan if isinstance(plan, Rel) and plan.kind == "aggregate" else None


def first_groups(
    groups: Plan,
    value: Expr,
    extreme: str,
    partitions: tuple[Expr, ...] = (),
    number: str = "rank",
) -> Plan:
    """The groups with the first number in each partition; those with a rank have a value."""
    rank = window(number, partitions, (value,), (DIRECTIONS[extreme],))
    ranked = project(groups, (*all_fields(groups.width), rank))
    is_first = function("equal", (Field(groups.width), integer_literal(1)))
    has_value = (function("is_not_null", (value,)),) if number == "rank" else ()
    return project(filter_rows(ranked, (is_first, *has_value)), all_fields(groups.width))


def is_count(value: Expr, groups: Plan) -> bool:
    """Whether a value is a count, which is never NULL."""
    below = _aggregate_below(groups)
    if below is None or not isinstance(value, Field):
        return False
    agg = aggregation(below)
    place = value.index - agg.n_before_measures
    return place >= 0 and agg.measures[place].name == "count"


def extreme_of(plan: Rel) -> tuple[str, Expr] | None:
    """(the name of the only measure of an aggregate, its argument) for a greatest or least value"""
    found = {(m.name, m.exprs) for m in aggregation(plan).measures}
    if len(found) != 1:
        return None
    ((name, exprs),) = found
    return (name, exprs[0]) if name in DIRECTIONS and len(exprs) == 1 else None
