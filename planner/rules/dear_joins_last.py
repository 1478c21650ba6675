"""A semi or anti join that waits for a model comes after the joins that do not.

before: ``(l semi join block(r)) anti join c``; also with an inner or left join, and with projections
        between
after:  ``(l anti join c) semi join block(r)``
safe:   semi and anti joins only keep or drop rows of their left side, by that side's columns, and
        every join here passes those rows on. What is left of them is the partner by which the block
        is reduced: see ``semi_join_reduction``.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.plan import (
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    has_window,
    inline,
    is_volatile,
    join_type,
    projected,
    substitute,
)
from blendfusion.planner.tree import asks_anything

_FILTERS = ("left_semi", "left_anti")
_PASSES_LEFT_ON = ("inner", "left", "left_semi", "left_anti", "left_mark")


def dear_joins_last(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind not in ("join", "cross"):
        return plan
    left, right = plan.inputs
    if join_type(plan) not in _PASSES_LEFT_ON or asks_anything(right):
        return plan
    columns, dear = _through_projection(left)
    if dear is None or any(map(is_volatile, (*plan.exprs, *columns))):
        return plan
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


def _through_projection(plan: Plan) -> tuple[tuple[Expr, ...], Rel | None]:
    """(the columns of ``plan`` over the left side of the dear join in it, that join); None if there is
    none at its top."""
    columns: tuple[Expr, ...] = all_fields(plan.width)
    if isinstance(plan, Rel) and plan.kind == "project" and not any(map(has_window, plan.exprs)):
        columns, plan = plan.exprs, plan.inputs[0]
    if isinstance(plan, Rel) and plan.kind == "join" and join_type(plan) in _FILTERS:
        left, right = plan.inputs
        if asks_anything(right) and not asks_anything(left):
            return columns, plan
    return columns, None
