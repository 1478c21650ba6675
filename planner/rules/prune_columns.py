"""Drops the columns of a block that the aggregate above does not read.

before: ``aggregate count(*)`` over ``block select id, x where llm(x)``
after:  ``aggregate count(*)`` over ``block select where llm(x)``
safe:   an aggregate's output depends on nothing but its keys and arguments.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.nodes import (
    Block,
    Plan,
    Rel,
    inline,
    prune,
)


def prune_columns(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    below = plan.inputs[0]
    if not isinstance(below, Block):
        return plan
    block, place = prune(below, plan.exprs)
    if block.width == below.width:
        return plan
    return replace(plan, inputs=(block,), exprs=tuple(inline(e, place) for e in plan.exprs))
