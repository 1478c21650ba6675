"""Asks nothing about rows that the other branches of a UNION have anyway, or those of an EXCEPT.

before: ``distinct`` over ``union all`` of ``filter llm(x)`` over ``t`` and ``filter p OR llm(y)``
        over ``u``; also ``filter llm(x)`` over ``t`` anti join the latter
after:  the same, with ``(filter llm(x) over t) anti join (filter p over u)`` as its first branch
safe:   a row of UNION comes once, from whichever branch, and a row of EXCEPT does not come if the
        other branch has it. The rows that a branch has for sure (planner/stages/subsets.py) are the
        same each time they are read. Of two branches that both have a row, the last one keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from blendfusion.planner.ir.aggregates import aggregation, is_distinct
from blendfusion.planner.ir.builders import function
from blendfusion.planner.ir.joins import is_union_all, join_plans, join_type
from blendfusion.planner.ir.nodes import Expr, Field, Plan, Rel, is_volatile, needs_model
from blendfusion.planner.ir.traversal import asks_anything, transform
from blendfusion.planner.stages.join_partners import exact, small
from blendfusion.planner.stages.subsets import subset


def rows_of_other_branches(plan: Plan) -> Plan:
    """The whole plan, before branches with calls become one block."""
    return transform(plan, _without_known_rows, ("join", "aggregate"))


def _without_known_rows(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or not asks_anything(plan):
        return plan
    if plan.kind == "join" and join_type(plan) == "left_anti":
        return _except(plan)
    union = plan.inputs[0] if is_distinct(plan) else plan
    if union is plan or not isinstance(union, Rel) or not is_union_all(union):
        return plan
    if {*aggregation(plan).keys} != {*map(Field, range(union.width))}:
        return plan
    known = [_for_sure(branch) for branch in union.inputs]
    inputs = [
        _anti_joined(b, _of_others(known, i)) if _may_lose_rows(b) else b
        for i, b in enumerate(union.inputs)
    ]
    return plan.with_inputs(union.with_inputs(*inputs))


def _except(plan: Rel) -> Plan:
    """The anti join over one with the rows that its other side has for sure."""
    left, right = plan.inputs
    known = _for_sure(right) if asks_anything(right) else None
    if known is None or any(needs_model(e) or is_volatile(e) for e in plan.exprs):
        return plan
    return plan.with_inputs(join_plans(left, known, plan.exprs, "left_anti"), right)


def _for_sure(branch: Plan) -> Plan | None:
    """The rows that a branch has, whatever the answers are; None if none are known."""
    rows = subset(branch)
    return None if rows is None else small(exact(rows))


def _of_others(known: Sequence[Plan | None], own: int) -> list[Plan]:
    """The known rows of the other branches; of those before branch ``own`` without its own."""
    mine = known[own]
    found = []
    for place, rows in enumerate(known):
        if rows is not None and place != own:
            before = place < own and mine is not None
            found.append(_anti_joined(rows, [mine]) if before and mine is not None else rows)
    return found


def _may_lose_rows(branch: Plan) -> bool:
    """Whether a branch asks, but about its rows, not for its columns."""
    while isinstance(branch, Rel) and branch.kind == "project":
        if any(map(needs_model, branch.exprs)):
            return False
        branch = branch.inputs[0]
    return asks_anything(branch)


def _anti_joined(branch: Plan, known: Sequence[Plan]) -> Plan:
    width = branch.width
    same: tuple[Expr, ...] = tuple(
        function("is_not_distinct_from", (Field(i), Field(width + i))) for i in range(width)
    )
    return reduce(lambda left, right: join_plans(left, right, same, "left_anti"), known, branch)
