"""Reduces blocks below several joins by a join above them that cannot move down.

before: ``((block(a)) join (block(b)) on f(a.x) = f(b.x)) join c on a.n < c.n``
after:  the same with the left block over ``a semi join c on a.n < c.n``
safe:   as for ``semi_join_reduction``: the joins in between pass on the rows of that side with
        their columns as they are. The partner asks nothing, so that it can come before all sides;
        of a side that asks, it is a superset.
"""

from __future__ import annotations

from blendfusion.planner.ir.joins import exchange_sides, is_join, join_type
from blendfusion.planner.ir.nodes import Plan
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.stages.reduced_sides import (
    DROPS_LEFT,
    DROPS_RIGHT,
    join_terms,
    known_terms,
    reduce_side,
)
from blendfusion.planner.stages.supersets import superset


def join_tree_reduction(plan: Plan) -> Plan:
    if not is_join(plan):
        return plan
    left, right = plan.inputs
    terms = join_terms(plan)
    bare = superset(right) if join_type(plan) in DROPS_LEFT and asks_anything(left) else None
    if bare is not None:
        new = reduce_side(left, known_terms(terms, left.width, bare), bare.plan, deep=True)
        return plan.with_inputs(new, right)
    if join_type(plan) in DROPS_RIGHT and not asks_anything(left):
        around = [exchange_sides(t, left.width, right.width) for t in terms]
        new = reduce_side(right, around, left, deep=True)
        return plan.with_inputs(left, new)
    return plan
