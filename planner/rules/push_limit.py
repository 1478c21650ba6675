"""Moves a limit into the block below it; EXISTS is a limit of one.

before: ``limit k`` over ``block where llm(x)``; ``t semi join (block where llm(x)) on TRUE``
after:  ``block where llm(x) limit k``, which stops reading its source at the k-th survivor;
        the same join with the block limited to one row
safe:   a block passes rows on in order; two limits compose to one. Such a join asks only whether
        there is a row.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import fetch_bounds, limit_rows, literal
from blendfusion.planner.ir.joins import TESTED, join_type
from blendfusion.planner.ir.nodes import Block, Plan, Rel


def push_limit(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    if plan.kind == "join":
        return _existence(plan)
    if plan.kind != "fetch":
        return plan
    below = plan.inputs[0]
    if not isinstance(below, Block):
        return plan
    offset, count = fetch_bounds(plan)
    counts = [] if count is None else [count]
    if below.count is not None:
        counts.append(max(0, below.count - offset))
    return replace(below, offset=below.offset + offset, count=min(counts, default=None))


def _existence(plan: Rel) -> Plan:
    left, right = plan.inputs
    if TESTED.get(join_type(plan)) != 1 or not all(literal(e) is True for e in plan.exprs):
        return plan
    if not isinstance(right, Block) or right.count in (0, 1) or _has_one_row(right):
        return plan
    return plan.with_inputs(left, limit_rows(right, 0, 1))


def _has_one_row(plan: Plan) -> bool:
    """A limit of one stands below blocks that only compute columns, which another rule moved up."""
    while isinstance(plan, Block) and not plan.where:
        plan = plan.inputs[0]
    return isinstance(plan, Rel) and plan.kind == "fetch" and fetch_bounds(plan)[1] in (0, 1)
