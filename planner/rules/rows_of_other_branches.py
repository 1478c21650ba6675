"""Asks nothing about rows that another branch of a UNION, which needs no model, has anyway.

before: ``distinct`` over ``union all`` of ``filter llm(x)`` over ``t`` and ``u``
after:  the same, with ``(filter llm(x) over t) anti join u`` on all columns as its first branch
safe:   a row of UNION comes once, from whichever branch. The rows of ``u`` are the same each time
        they are read.
"""

from __future__ import annotations

from functools import reduce

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import function
from blendfusion.planner.ir.joins import is_union_all, joined
from blendfusion.planner.ir.nodes import Expr, Field, Plan, Rel, needs_model
from blendfusion.planner.ir.traversal import asks_anything, transform
from blendfusion.planner.stages.join_partners import exact


def rows_of_other_branches(plan: Plan) -> Plan:
    """The whole plan, before branches with calls become one block."""
    return transform(plan, _without_known_rows)


def _without_known_rows(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    agg = aggregation(plan)
    union = plan.inputs[0]
    if agg.measures or not agg.has_one_grouping or not is_union_all(union):
        return plan
    if not isinstance(union, Rel) or {*agg.keys} != {*map(Field, range(union.width))}:
        return plan
    known = [b for b in union.inputs if not asks_anything(b) and exact(b) is not None]
    if not known or len(known) == len(union.inputs):
        return plan
    inputs = [_anti_joined(b, known) if _may_lose_rows(b) else b for b in union.inputs]
    return plan.with_inputs(union.with_inputs(*inputs))


def _may_lose_rows(branch: Plan) -> bool:
    """Whether a branch asks, but about its rows, not for its columns."""
    while isinstance(branch, Rel) and branch.kind == "project":
        if any(map(needs_model, branch.exprs)):
            return False
        branch = branch.inputs[0]
    return asks_anything(branch)


def _anti_joined(branch: Plan, known: list[Plan]) -> Plan:
    width = branch.width
    same: tuple[Expr, ...] = tuple(
        function("is_not_distinct_from", (Field(i), Field(width + i))) for i in range(width)
    )
    return reduce(lambda left, right: joined(left, right, same, "left_anti"), known, branch)
