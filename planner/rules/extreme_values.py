"""Reads the largest or smallest value of rows that a model chooses from the first of them in order.

before: ``aggregate max(n)`` over ``block(t) where llm(x)``
after:  the same over ``limit 1`` over ``sort by n descending`` over the block; of equal ``n``, rows
        that pass whatever the answers are come first
safe:   the first row that passes has the largest value, and the aggregate of no row is NULL, as of
        a NULL, which comes last. A limit ends the questions.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import (
    cast_to_text,
    function,
    limited,
    ordered,
)
from blendfusion.planner.ir.necessary import (
    ALWAYS,
    NEVER,
    any_of,
    to_fail,
)
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
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
    if needs_model(value) or is_volatile(value) or literal_like(value) or not may_move(block):
        return plan
    if not any(map(needs_model, block.where)):
        return plan
    chosen = replace(block, select=(value, *among_equal(block)))
    first = limited(
        ordered(chosen, *all_fields(chosen.width), descending=measure.name == "max"), 0, 1
    )
    return replace(plan, inputs=(first,), exprs=(Field(0),))


def among_equal(block: Block) -> tuple[Expr, ...]:
    """The order in which a block is asked about rows that are equal in a query's order: first those
    that pass whatever the answers are, then by values, so that a second run asks nothing."""
    texts = dict.fromkeys(arg for e in block.where for ask in asks(e) for arg in ask.args)
    others = (t for t in texts if isinstance(cast_to_text(t) or t, Field))
    return (*certain_first(block), *others)


def certain_first(block: Block) -> tuple[Expr, ...]:
    """The order in which the rows of a block come first that pass whatever the answers are; none if
    there are none such."""
    fails = any_of([to_fail(term) for term in block.where])
    return () if fails in (ALWAYS, NEVER) else (function("is_true", (fails,)),)
