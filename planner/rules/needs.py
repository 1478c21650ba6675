"""Asks only about the rows that are read: one pass from the root down.

before: ``filter n <= k`` over ``row_number() OVER (PARTITION BY g ORDER BY d) AS n`` over
        ``block(t) where llm(x)``; also of rank and dense_rank; ``limit k`` over ``sort by d``;
        ``first_value(v ORDER BY d)``, ``max(d)`` and DISTINCT by ``g``; IN, EXISTS; and what
        stands above these: ``limit 2`` over ``sort by g`` over ``filter n <= k``
after:  the same over the block over ``sort by d`` over ``t`` with the first k rows of each ``g``;
        of the first two of these; or one of equal rows
safe:   each relation says what is read of its inputs (planner/needs/inputs.py): rows behind the
        first ones, or equal to others, change nothing that it is read for.
"""

from __future__ import annotations

from collections.abc import Callable

from blendfusion.planner.ir.nodes import Block, Plan, Rel, StoredRows
from blendfusion.planner.ir.traversal import asks_anything, with_subplans
from blendfusion.planner.needs.inputs import needs_below
from blendfusion.planner.needs.need import ALL, Need
from blendfusion.planner.needs.plans import restrict


def needs(plan: Plan) -> Plan:
    """The whole plan."""
    done: dict[tuple[int, Need], tuple[Plan, Plan]] = {}

    def apply_need(part: Plan, need: Need) -> Plan:
        if (id(part), need) not in done:
            done[id(part), need] = part, _apply_need(part, need, apply_need)
        return done[id(part), need][1]

    return apply_need(plan, ALL)


def _apply_need(plan: Plan, need: Need, apply_need: Callable[[Plan, Need], Plan]) -> Plan:
    if isinstance(plan, StoredRows) or not asks_anything(plan):
        return plan
    new: Rel | Block = restrict(plan, need) if isinstance(plan, Block) else plan
    below = needs_below(new, need)
    inputs = tuple(apply_need(p, own) for p, own in zip(new.inputs, below, strict=True))
    new = new.with_inputs(*inputs)
    if not new.has_subqueries:
        return new
    return with_subplans(
        new, lambda p: p if any(p is own for own in inputs) else apply_need(p, ALL)
    )
