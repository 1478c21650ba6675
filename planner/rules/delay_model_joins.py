"""Moves a semi or anti join that waits for a model above the joins that do not.

before: ``(l semi join block(r)) anti join c``; also with an inner or left join, and with
        projections between
after:  ``(l anti join c) semi join block(r)``
safe:   semi and anti joins only keep or drop rows of their left side, by that side's columns, and
        every join here passes those rows on. What is left of them is the partner by which the block
        is reduced: see ``semi_join_reduction``.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import projected
from blendfusion.planner.ir.joins import join_type
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Plan,
    Rel,
    inline,
    is_volatile,
    substitute,
    through_projection,
)
from blendfusion.planner.ir.traversal import asks_anything

_FILTERS = ("left_semi", "left_anti")
_PASSES_LEFT_ON = ("inner", "left", "left_semi", "left_anti", "left_mark")


def delay_model_joins(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind not in ("join", "cross"):
        return plan
    left, right = plan.inputs
    if join_type(plan) not in _PASSES_LEFT_ON or asks_anything(right):
        return plan
    columns, dear = through_projection(left)
    if not _waits_for_model(dear) or any(map(is_volatile, (*plan.exprs, *columns))):
        return plan
    assert isinstance(dear, Rel)
    rows, block = dear.inputs
    rights = tuple(Field(rows.width + i) for i in range(right.width))
    condition = tuple(inline(e, (*columns, *rights)) for e in plan.exprs)
    gained = plan.width - left.width
    cheap = replace(plan, inputs=(rows, right), exprs=condition, width=rows.width + gained)

    def shifted(part: Expr) -> Expr | None:
        if isinstance(part, Field) and part.index >= rows.width:
            return Field(part.index + gained)
        return None

    exprs = tuple(substitute(e, shifted) for e in dear.exprs)
    last = replace(dear, inputs=(cheap, block), exprs=exprs, width=cheap.width)
    return projected(last, (*columns, *(Field(rows.width + i) for i in range(gained))))


def _waits_for_model(plan: Plan) -> bool:
    """Whether a plan is a semi or anti join in which only the right side contains calls."""
    if not isinstance(plan, Rel) or plan.kind != "join" or join_type(plan) not in _FILTERS:
        return False
    left, right = plan.inputs
    return asks_anything(right) and not asks_anything(left)
