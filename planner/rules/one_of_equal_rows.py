"""Asks about equal rows until one passes, where any one is as good as all.

before: ``distinct k``, or ``max(k)``, over ``block(t) select k where llm(x)``; or the block as the
        other side of IN, EXISTS, INTERSECT or EXCEPT
after:  the same over a block that may leave out rows that are equal to others of it
safe:   such a relation has the same rows however often its input has each row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.joins import is_union_all, join_type
from blendfusion.planner.ir.nodes import (
    Block,
    Field,
    Plan,
    Rel,
    fields,
    has_window,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
    with_input,
)

OF_EACH_ONCE = ("max", "min", "bool_or", "bool_and")
"""Aggregates that do not depend on how often a value comes."""
TESTED = {
    **dict.fromkeys(("left_semi", "left_anti", "left_mark"), 1),
    **dict.fromkeys(("right_semi", "right_anti"), 0),
}
"""The input of which a join only sees whether there is a partner."""


def one_of_equal_rows(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    side = 0
    if plan.kind == "aggregate":
        if any(measure.name not in OF_EACH_ONCE for measure in aggregation(plan).measures):
            return plan
    elif plan.kind == "join" and join_type(plan) in TESTED:
        side = TESTED[join_type(plan)]
    else:
        return plan
    new = _once(plan.inputs[side])
    return plan if new is plan.inputs[side] else with_input(plan, side, new)


def _once(plan: Plan) -> Plan:
    if isinstance(plan, Block):
        return replace(plan, once=True) if _may_differ(plan) and may_move(plan) else plan
    if not isinstance(plan, Rel) or plan.kind not in ("project", "filter"):
        return plan
    if any(is_volatile(e) or has_window(e) for e in plan.exprs):
        return plan
    below = _once(plan.inputs[0])
    return plan if below is plan.inputs[0] else plan.with_inputs(below)


def _may_differ(block: Block) -> bool:
    """Whether rows that are equal may have other answers, or need none."""
    if any(map(needs_model, block.select)):
        return False
    read = set().union(*(fields(e) for e in block.where if needs_model(e)))
    shown = {e.index for e in block.select if isinstance(e, Field)}
    return any(not _is_shown(block.source, i, shown) for i in read)


def _is_shown(plan: Plan, column: int, shown: Collection[int]) -> bool:
    """Whether a column is one of those that are ``shown``, or has the value of one."""
    if column in shown:
        return True
    if is_union_all(plan):
        return all(_is_shown(branch, column, shown) for branch in plan.inputs)
    if not isinstance(plan, Rel) or plan.kind != "project":
        return False
    own = plan.exprs[column]
    return literal_like(own) or own in [plan.exprs[i] for i in shown]
