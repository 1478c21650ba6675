"""Drops outer joins of which no column is read, where repeated rows do not matter.

before: ``max(l.x)`` over ``l left join r on llm(l.x) = llm(r.y)``; also DISTINCT over a UNION ALL
        of such rows, and the other side of IN, EXISTS, INTERSECT or EXCEPT
after:  the same over ``l``
safe:   a left join has every row of its left side, once or several times, whatever matches.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import boolean_literal, project
from blendfusion.planner.ir.joins import TESTED, is_union_all, join_type
from blendfusion.planner.ir.nodes import (
    Expr,
    Plan,
    Rel,
    all_fields,
    fields,
    has_window,
    is_volatile,
)
from blendfusion.planner.ir.traversal import asks_anything, subplans, transform
from blendfusion.planner.needs.inputs import OF_EXTREME

_STAYS = {"left": 0, "right": 1}
"""The input of each outer join whose rows all stay, and no others."""


def unread_joins(plan: Plan) -> Plan:
    """The whole plan, before its calls are in blocks."""
    if "join" not in plan.kinds or not any(map(_asks_for_partners, subplans(plan))):
        return plan
    return transform(plan, _with_sets_below, ("aggregate", "join"))


def _asks_for_partners(plan: Plan) -> bool:
    """Whether a plan is an outer join that asks for more than the rows that stay."""
    if not isinstance(plan, Rel) or plan.kind != "join" or join_type(plan) not in _STAYS:
        return False
    return plan.calls_here or asks_anything(plan.inputs[1 - _STAYS[join_type(plan)]])


def _with_sets_below(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or any(map(is_volatile, plan.exprs)):
        return plan
    if plan.kind == "aggregate":
        measures = aggregation(plan).measures
        if any(m.name not in OF_EXTREME for m in measures):
            return plan
        return plan.with_inputs(_as_set(plan.inputs[0], _read(plan.exprs)))
    if join_type(plan) not in TESTED:
        return plan
    side, n_left = TESTED[join_type(plan)], plan.inputs[0].width
    read = {i - side * n_left for i in _read(plan.exprs) if (i >= n_left) == side}
    inputs = list(plan.inputs)
    inputs[side] = _as_set(inputs[side], read)
    return plan.with_inputs(*inputs)


def _as_set(plan: Plan, read: Collection[int]) -> Plan:
    """``plan`` of whose columns only ``read`` matter, and of equal rows any one. Its other columns
    may hold anything."""
    if not isinstance(plan, Rel) or any(is_volatile(e) or has_window(e) for e in plan.exprs):
        return plan
    if plan.kind == "project":
        shown = [plan.exprs[i] for i in read]
        below = _as_set(plan.inputs[0], _read(shown))
        if below is plan.inputs[0]:
            return plan
        blank = boolean_literal(True)
        return project(below, tuple(e if i in read else blank for i, e in enumerate(plan.exprs)))
    if plan.kind in ("filter", "sort"):
        return plan.with_inputs(_as_set(plan.inputs[0], {*read, *_read(plan.exprs)}))
    if is_union_all(plan) and len(read) == plan.width:  # else a column has several types
        return plan.with_inputs(*(_as_set(branch, read) for branch in plan.inputs))
    if plan.kind not in ("join", "cross"):
        return plan
    kind, (left, right) = join_type(plan), plan.inputs
    stays = _STAYS.get(kind)
    if stays is not None and all((i >= left.width) == stays for i in read):
        kept = _as_set(plan.inputs[stays], {i - stays * left.width for i in read})
        blanks = (boolean_literal(True),) * plan.inputs[1 - stays].width
        columns = all_fields(kept.width)
        return project(kept, (*blanks, *columns) if stays else (*columns, *blanks))
    if kind not in ("inner", *_STAYS):
        return plan
    known = {*read, *_read(plan.exprs)}
    return plan.with_inputs(
        _as_set(left, {i for i in known if i < left.width}),
        _as_set(right, {i - left.width for i in known if i >= left.width}),
    )


def _read(exprs: Sequence[Expr]) -> set[int]:
    return set().union(*map(fields, exprs))
