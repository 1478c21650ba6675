"""Filters the rows below grouping sets by a key that the result must have.

before: ``filter k = 1`` over ``aggregate sum(llm(x)) by grouping sets ((k), ())``
after:  the same over ``filter k = 1`` below the aggregate
safe:   a group of a set with ``k`` has one value of it, and passes whole or not at all. In a set
        without ``k`` it is NULL, for which the condition is not true: all of its groups go anyway.
"""

from __future__ import annotations

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import filter_rows
from blendfusion.planner.ir.nodes import (
    Expr,
    Plan,
    Rel,
    below_projections,
    conjuncts,
    fields,
    inline,
    is_volatile,
    needs_model,
    over,
)
from blendfusion.planner.ir.null_values import rejects
from blendfusion.planner.ir.traversal import transform


def keys_of_sets(plan: Plan) -> Plan:
    """The whole plan."""
    return transform(plan, _filter, ("filter",))


def _filter(plan: Plan) -> Plan:
    assert isinstance(plan, Rel)
    columns, below = below_projections(plan.inputs[0])
    if not isinstance(below, Rel) or below.kind != "aggregate" or not below.has_calls:
        return plan
    agg = aggregation(below)
    if agg.one_group_a_row:
        return plan
    terms = [inline(t, columns) for t in conjuncts(plan.exprs[0])]
    own = tuple(inline(t, agg.keys) for t in terms if _is_of_one_key(t, len(agg.keys)))
    source = filter_rows(below.inputs[0], tuple(t for t in own if not needs_model(t)))
    if source is below.inputs[0]:
        return plan
    return plan.with_inputs(over(plan.inputs[0], below, below.with_inputs(source)))


def _is_of_one_key(term: Expr, n_keys: int) -> bool:
    """Whether a condition reads one key alone, and is not true where that is NULL."""
    read = fields(term)
    if len(read) != 1 or is_volatile(term) or needs_model(term):
        return False
    return max(read) < n_keys and rejects(term, sorted(read))
