"""Reads the largest or smallest value of rows that a model chooses from the first of them in order.

before: ``aggregate max(n)`` over ``block(t) where llm(x)``
after:  the same over ``limit 1`` over ``sort by n descending`` over the block, ``n`` not NULL
safe:   the first row that passes has the largest value, and the aggregate of no row is NULL. A
        limit ends the questions; the rows behind it are not asked about.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import cast_to_text, function, limited, ordered
from blendfusion.planner.ir.nodes import (
    Block,
    Field,
    Plan,
    Rel,
    all_fields,
    asks,
    inline,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
)


def extreme_values(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    block, agg = plan.inputs[0], aggregation(plan)
    if agg.n_before_measures or len(agg.measures) != 1 or not isinstance(block, Block):
        return plan
    measure = agg.measures[0]
    if measure.name not in ("max", "min") or measure.n_sorts or measure.filter is not None:
        return plan
    value = inline(measure.args[0], block.select)
    if needs_model(value) or is_volatile(value) or literal_like(value):
        return plan
    if not may_move(block) or not any(map(needs_model, block.where)):
        return plan
    present = function("is_not_null", (value,))
    # Rows with equal values have an order, too, so that a second run asks nothing.
    texts = dict.fromkeys(arg for e in block.where for ask in asks(e) for arg in ask.args)
    others = tuple(t for t in texts if isinstance(cast_to_text(t) or t, Field))
    chosen = replace(block, where=(*block.where, present), select=(value, *others))
    first = limited(
        ordered(chosen, *all_fields(chosen.width), descending=measure.name == "max"), 0, 1
    )
    return replace(plan, inputs=(first,), exprs=(Field(0),))
