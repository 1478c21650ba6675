"""Tells a call that ranks values how many ranks a limit wants.

before: ``limit k`` over ``sort by prefers(x)``
after:  ``limit k`` over ``sort by prefers(x, k)``; over a descending sort, ``-k``
safe:   the first k rows have the first k ranks at most, since each rank belongs to one value, and
        all other values share a rank behind these. Nothing between the limit and the call drops
        rows: predicates of the call's block must stand in its domain, too.
"""

from __future__ import annotations

from dataclasses import replace

from substrait.proto import Rel as RelMessage
from substrait.proto import SortField

from blendfusion.planner.ir.builders import fetch_bounds
from blendfusion.planner.ir.nodes import Ask, Block, Expr, Field, Plan, Rel, substitute
from blendfusion.planner.ir.traversal import subplans
from blendfusion.udfs.declare.limited_ranks import with_ranks

_DESCENDING = (
    SortField.SORT_DIRECTION_DESC_NULLS_FIRST,
    SortField.SORT_DIRECTION_DESC_NULLS_LAST,
)


def ranked_limits(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "fetch":
        return plan
    offset, count = fetch_bounds(plan)
    if not count:
        return plan
    below = _below(plan.inputs[0], offset + count)
    return plan if below is None else plan.with_inputs(below)


def _below(plan: Plan, wanted: int) -> Plan | None:
    """``plan`` with its sort limited; None if there is nothing to limit."""
    if isinstance(plan, Rel) and plan.kind == "sort":
        return _sorted(plan, wanted)
    if not _keeps_rows(plan):
        return None
    assert isinstance(plan, Rel | Block)
    below = _below(plan.inputs[0], wanted)
    return None if below is None else plan.with_inputs(below)


def _sorted(sort: Rel, wanted: int) -> Plan | None:
    direction = RelMessage.FromString(sort.template).sort.sorts[0].direction
    ranks = -wanted if direction in _DESCENDING else wanted
    key = sort.exprs[0]
    if isinstance(key, Field):
        source = _column(sort.inputs[0], key.index, ranks)
        return None if source is None else sort.with_inputs(source)
    found = _limited(key, ranks)
    return None if found is None else replace(sort, exprs=(found, *sort.exprs[1:]))


def _column(plan: Plan, index: int, ranks: int) -> Plan | None:
    """``plan`` with the call of one of its columns limited; None if the column is none."""
    if not isinstance(plan, Block) and not _keeps_rows(plan):
        return None
    assert isinstance(plan, Rel | Block)
    exprs = plan.select if isinstance(plan, Block) else plan.exprs
    own = exprs[index]
    if isinstance(own, Field):
        if not _keeps_rows(plan):
            return None
        below = _column(plan.inputs[0], own.index, ranks)
        return None if below is None else plan.with_inputs(below)
    new = _limited(own, ranks)
    if new is None or not (_keeps_rows(plan) or _in_domain(plan, new)):
        return None
    changed = tuple(substitute(e, lambda part: new if part == own else None) for e in exprs)
    return (
        replace(plan, select=changed) if isinstance(plan, Block) else replace(plan, exprs=changed)
    )


def _limited(expr: Expr, ranks: int) -> Ask | None:
    if not isinstance(expr, Ask):
        return None
    call = with_ranks(expr.call, ranks)
    return None if call is None else replace(expr, call=call)


def _keeps_rows(plan: Plan) -> bool:
    if isinstance(plan, Block):
        return not plan.where and not plan.limited
    return isinstance(plan, Rel) and plan.kind == "project"


def _in_domain(plan: Plan, ask: Ask) -> bool:
    """Whether the values of ``ask`` are those of the rows that its block leaves."""
    if not isinstance(plan, Block) or plan.limited or ask.domain is None:
        return False
    left = replace(plan, select=())
    return any(
        isinstance(part, Block) and replace(part, select=()) == left
        for part in subplans(ask.domain)
    )
