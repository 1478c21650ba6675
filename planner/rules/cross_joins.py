"""Moves a predicate on one side of a join without keys below the join.

before: ``block where llm(t.x) AND llm(u.y) AND p(t.x, u.y)`` over ``t cross join u``
after:  ``block where p(t.x, u.y)`` over ``(block(t) where llm(t.x)) cross join (block(u) where
        llm(u.y))``
safe:   every row of a side meets every row of the other, so a side's predicate sees the same values
        before as after; but rows of both sides are fewer than their pairs. Under a limit the pairs
        come one after the other, and stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import project
from blendfusion.planner.ir.joins import is_join, join_type
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    is_key,
    is_volatile,
    literal_like,
    needs_model,
    shift,
    side_of,
)
from blendfusion.planner.ir.traversal import expressions


def cross_joins(plan: Plan) -> Plan:
    if not isinstance(plan, Block) or plan.has_limit or not _is_keyless(plan.source):
        return plan
    assert isinstance(plan.source, Rel)
    left, right = plan.source.inputs
    sides = {t: None if is_volatile(t) else side_of(t, left.width) for t in plan.where}
    lefts, rights, rest = (
        tuple(t for t in plan.where if sides[t] == side) for side in ("left", "right", None)
    )
    if not lefts and not rights:
        return plan
    moved = tuple(shift(t, -left.width) for t in rights)
    new_left = _over(left, lefts) if lefts else left
    new_right = _over(right, moved) if rights else right
    source = plan.source.with_inputs(new_left, new_right)
    if not rest and not any(map(needs_model, plan.select)):
        return project(source, plan.select)
    return replace(plan, source=source, where=rest)


def _over(side: Plan, where: tuple[Expr, ...]) -> Plan:
    """The block of predicates over a side, or over the sides of a join without any condition: those
    of one relation ask the same values wherever they stand."""
    block = Block(side, where, all_fields(side.width))
    crossed = _is_keyless(side) and all(literal_like(e) for e in expressions(side))
    return cross_joins(block) if crossed else block


def _is_keyless(source: Plan) -> bool:
    if not is_join(source) or join_type(source) != "inner":
        return False
    n_left = source.inputs[0].width
    return not any(is_key(t, n_left) for e in source.exprs for t in conjuncts(e))
