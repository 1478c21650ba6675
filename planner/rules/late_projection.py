"""Moves a sort, and a limit of an unfiltered block, below the block.

before: ``sort by cheap`` over a block; ``limit k`` over a block that drops no rows;
        ``sort by llm(x)`` over a block that also computes ``llm(y)``
after:  the block over the sort or limit; for a sort by a model's answers only the keys are
        computed below it, the rest above, where a limit can still sink past
safe:   a block keeps the order of its source and works row by row. ``sort by random()`` has the
        rows that pass in a random order, whenever the numbers are drawn.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import fetch_bounds, limit_rows
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    inline,
    is_volatile,
    needs_model,
    substitute,
)


def late_projection(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind not in ("sort", "fetch"):
        return plan
    below = plan.inputs[0]
    if not isinstance(below, Block) or below.has_limit:
        return plan
    if plan.kind == "fetch":
        if below.where:
            return plan
        return replace(below, source=limit_rows(below.source, *fetch_bounds(plan)))
    keys = tuple(inline(e, below.select) for e in plan.exprs)
    if any(map(is_volatile, below.select)):
        return plan
    if any(map(needs_model, keys)):
        return plan if any(map(is_volatile, keys)) else _by_answers(plan, below, keys)
    source = replace(plan, inputs=(below.source,), exprs=keys, width=below.source.width)
    return replace(below, source=source)


def _by_answers(plan: Rel, block: Block, keys: tuple[Expr, ...]) -> Plan:
    """For a sort by answers, a block below it computes the keys, and one above it the rest."""
    if not any(needs_model(e) and e not in keys for e in block.select):
        return plan
    width = block.source.width
    own = tuple(dict.fromkeys(k for k in keys if needs_model(k)))
    place = {key: Field(width + i) for i, key in enumerate(own)}
    below = replace(block, select=(*all_fields(width), *own))
    ordered = replace(
        plan,
        inputs=(below,),
        exprs=tuple(substitute(k, place.get) for k in keys),
        width=below.width,
    )
    return Block(ordered, (), tuple(substitute(e, place.get) for e in block.select))
