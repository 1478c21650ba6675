"""Computes an aggregate's argument with a gated call in the block below, where gates apply.

before: ``aggregate sum(CASE WHEN n > 1 AND c THEN 1 END)`` over ``block select llm(x) AS c, n``
after:  ``aggregate sum(v)`` over ``block select CASE WHEN n > 1 AND llm(x) THEN 1 END AS v``
safe:   the aggregate reads the same values. DataFusion takes a call that occurs twice out of the
        CASEs around it, so that every row would be asked; in the block the gates count again."""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.aggregates import aggregate, aggregation
from blendfusion.planner.ir.nodes import (
    GATES,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    fields,
    inline,
    is_volatile,
    needs_model,
    walk,
)


def lazy_aggregate_arguments(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    block = plan.inputs[0]
    if not isinstance(block, Block) or any(map(is_volatile, block.select)):
        return plan
    answers = {i for i, e in enumerate(block.select) if needs_model(e)}
    gated = list(dict.fromkeys(e for e in plan.exprs if fields(e) & answers and _has_gate(e)))
    if not gated:
        return plan
    place: dict[Expr, Expr] = {e: Field(block.width + i) for i, e in enumerate(gated)}
    moved = aggregation(plan).change(lambda e: place.get(e, e))
    select = (*block.select, *(inline(e, block.select) for e in gated))
    return aggregate(replace(block, select=select), moved)


def _has_gate(expr: Expr) -> bool:
    return any(isinstance(e, Node) and e.name in GATES for e in walk(expr))
