"""Drops the columns of a block that the aggregate above does not read.

before: ``aggregate count(*)`` over ``block select id, x where llm(x)``
after:  ``aggregate count(*)`` over ``block select where llm(x)``
safe:   an aggregate's output depends on nothing but its keys and arguments.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.nodes import Block, Expr, Field, Plan, Rel, fields, substitute


def prune_columns(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    below = plan.inputs[0]
    if not isinstance(below, Block):
        return plan
    used = sorted(set().union(*(fields(e) for e in plan.exprs)))
    if len(used) == below.width:
        return plan
    place = {old: Field(new) for new, old in enumerate(used)}

    def move(expr: Expr) -> Expr | None:
        return place[expr.index] if isinstance(expr, Field) else None

    exprs = tuple(substitute(e, move) for e in plan.exprs)
    block = replace(below, select=tuple(below.select[i] for i in used))
    return replace(plan, inputs=(block,), exprs=exprs)
