"""Moves a block above a join that keeps the rows of the block's side.

before: ``block(l)`` inner/cross join r; semi, anti, mark or left join with the block on the left;
        right joins with it on the right; on the other side of an outer join, a block that only
        computes answers
after:  a block with the same predicates and columns over the join of the sources
safe:   such a join only repeats or drops rows of that side, so filtering and mapping them row by
        row before or after is the same; what a model sees after are values of fewer rows. The
        other side of an outer join also gets rows of NULLs: columns and calls on columns are NULL
        there, as they must be, without asking. The block must have no limit, and the join
        condition may not need a model.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.joins import PASSES_ON, is_join, join_type
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    inline,
    may_move,
    needs_model,
    shift,
)
from blendfusion.planner.ir.null_values import null_for_nulls

_PADS_LEFT = ("right", "outer")
_PADS_RIGHT = ("left", "outer")


def pull_up(plan: Plan) -> Plan:
    if not is_join(plan):
        return plan
    left, right = plan.inputs
    kind = join_type(plan)
    moved: Plan | None = None
    if isinstance(left, Block) and (
        kind in PASSES_ON[0] or (kind in _PADS_LEFT and _keeps_null(left))
    ):
        moved = _above(plan, left, right) if may_move(left) else None
    if moved is None and isinstance(right, Block):
        may = kind in PASSES_ON[1] or (kind in _PADS_RIGHT and _keeps_null(right))
        moved = _above_right(plan, left, right, kind) if may and may_move(right) else None
    return moved or plan


def _keeps_null(block: Block) -> bool:
    """Whether the block maps a row of NULLs to a row of NULLs."""
    return not block.where and all(map(null_for_nulls, block.select))


def _above(plan: Rel, left: Block, right: Plan) -> Plan | None:
    n_source, n_out = left.source.width, left.width
    rights = tuple(Field(n_source + i) for i in range(right.width))
    condition = tuple(inline(e, (*left.select, *rights)) for e in plan.exprs)
    if any(map(needs_model, condition)):
        return None
    width = n_source + (plan.width - n_out)
    join = replace(plan, inputs=(left.source, right), exprs=condition, width=width)
    kept: tuple[Expr, ...] = tuple(Field(n_source + i) for i in range(plan.width - n_out))
    return Block(join, left.where, (*left.select, *kept))


def _above_right(plan: Rel, left: Plan, right: Block, kind: str) -> Plan | None:
    moved = tuple(shift(e, left.width) for e in right.select)
    condition = tuple(inline(e, (*all_fields(left.width), *moved)) for e in plan.exprs)
    if any(map(needs_model, condition)):
        return None
    if kind in ("right_semi", "right_anti"):
        join = replace(plan, inputs=(left, right.source), exprs=condition, width=right.source.width)
        return Block(join, right.where, right.select)
    width = left.width + right.source.width
    join = replace(plan, inputs=(left, right.source), exprs=condition, width=width)
    where = tuple(shift(t, left.width) for t in right.where)
    return Block(join, where, (*all_fields(left.width), *moved))
