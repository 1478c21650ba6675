"""Computes calls of a join's condition in the sides of the join."""

from __future__ import annotations

from dataclasses import replace

from blendfusion.errors import PlanError
from blendfusion.planner.ir.builders import conjunction, project
from blendfusion.planner.ir.joins import columns_within, join_type, join_width
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    needs_model,
    shift,
    side_of,
    substitute,
)


def with_side_columns(plan: Rel, terms: tuple[Expr, ...]) -> Plan:
    """The join over inputs that compute the calls of its condition that read one side alone."""
    left, right = plan.inputs
    extra: dict[str, dict[Expr, Expr]] = {"left": {}, "right": {}}

    def column(expr: Expr) -> Expr | None:
        if not needs_model(expr):
            return None
        side = side_of(expr, left.width)
        if side is None:
            return None
        moved = expr if side == "left" else shift(expr, -left.width)
        extra[side].setdefault(expr, moved)
        return expr

    for term in terms:
        substitute(term, column)
    lefts, rights = list(extra["left"]), list(extra["right"])
    n_left = left.width + len(lefts)

    def position(expr: Expr) -> Expr | None:
        if expr in extra["left"]:
            return Field(left.width + lefts.index(expr))
        if expr in extra["right"]:
            return Field(n_left + right.width + rights.index(expr))
        if isinstance(expr, Field) and expr.index >= left.width:
            return Field(expr.index - left.width + n_left)
        return None

    condition = conjunction(tuple(substitute(t, position) for t in terms))
    if needs_model(condition):
        raise PlanError(f"a call on both sides of a {join_type(plan)} join")
    new_left, new_right = left, right
    if lefts:
        new_left = Block(left, (), (*all_fields(left.width), *extra["left"].values()))
    if rights:
        new_right = Block(right, (), (*all_fields(right.width), *extra["right"].values()))
    width = join_width(join_type(plan), new_left.width, new_right.width)
    join = replace(plan, inputs=(new_left, new_right), exprs=(condition,), width=width)
    return project(join, columns_within(join, plan))
