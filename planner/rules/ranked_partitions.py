"""Ranks the values of each partition by themselves where only their first ranks are wanted.

before: ``filter n <= k`` over ``row_number() OVER (PARTITION BY g ORDER BY prefers(x)) AS n``
after:  the same over ``prefers(x, k)`` among the values with an equal ``g``; ``-k`` where the order
        descends
safe:   the window numbers the rows of a partition, so that the order of values of different
        partitions says nothing; the first k rows of a partition have the first k of its ranks at
        most (see ``ranked_limits``). Nothing but windows over the same partitions, in this order,
        reads the ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blendfusion.planner.ir.aggregates import distinct
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    fields,
    has_window,
    inline,
    is_volatile,
    needs_model,
    walk,
)
from blendfusion.planner.ir.ranked_rows import in_domain, keeps_rows
from blendfusion.planner.ir.sorts import DESCENDING
from blendfusion.planner.ir.windows import NUMBERS, first_ranks, order_of
from blendfusion.udfs.declare.top_ranks import with_ranks


@dataclass(frozen=True, slots=True)
class _Numbering:
    """How a window numbers rows: by the order of a column in partitions."""

    column: int
    descending: bool
    partitions: tuple[Expr, ...]


def ranked_partitions(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    if plan.kind == "filter":
        found = _rank_filter(plan)
        return plan if found is None or found.ranks else found.plan
    below = plan.inputs[0] if plan.kind == "project" else None
    if not isinstance(below, Rel) or below.kind != "filter":
        return plan
    found = _rank_filter(below)
    if found is None or any(found.ranks & fields(e) for e in plan.exprs):
        return plan
    return plan.with_inputs(found.plan)


@dataclass(frozen=True, slots=True)
class _RankedPlan:
    """A plan with its call limited, and the columns of it that are the ranks."""

    plan: Plan
    ranks: frozenset[int] = frozenset()


def _rank_filter(plan: Rel) -> _RankedPlan | None:
    for term in conjuncts(plan.exprs[0]):
        rank, wanted = first_ranks(term)
        if wanted >= 1 and isinstance(rank, Field):
            found = _rank_numbers(plan.inputs[0], rank.index, wanted)
            if found is not None and not found.ranks & fields(plan.exprs[0]):
                return replace(found, plan=plan.with_inputs(found.plan))
    return None


def _rank_numbers(plan: Plan, index: int, wanted: int) -> _RankedPlan | None:
    """``plan`` with the call limited by whose order the column ``index`` numbers rows."""
    if not isinstance(plan, Rel) or plan.kind != "project":
        return None
    own, source = plan.exprs[index], plan.inputs[0]
    if any(map(has_window, plan.exprs)):
        found = _rank_windows(plan, own, wanted)
    else:
        found = _rank_numbers(source, own.index, wanted) if isinstance(own, Field) else None
    if found is None:
        return None
    reads = {i: e for i, e in enumerate(plan.exprs) if found.ranks & fields(e)}
    if not all(isinstance(e, Field) or has_window(e) for e in reads.values()):
        return None
    exposed = frozenset(i for i, e in reads.items() if isinstance(e, Field))
    return _RankedPlan(plan.with_inputs(found.plan), exposed)


def _rank_windows(plan: Rel, own: Expr, wanted: int) -> _RankedPlan | None:
    """The input of windows, with the call limited by whose order ``own`` numbers rows."""
    order = _numbering(own)
    if order is None or not all(_numbering(e) == order for e in plan.exprs if has_window(e)):
        return None
    if any(order.column in fields(key) for key in order.partitions):
        return None
    ranks = -wanted if order.descending else wanted
    below = _rank_column(plan.inputs[0], order.column, ranks, order.partitions)
    return None if below is None else _RankedPlan(below, frozenset({order.column}))


def _numbering(expr: Expr) -> _Numbering | None:
    order = order_of(expr) if isinstance(expr, Node) and expr.name in NUMBERS else None
    if order is None or not order.partitions or not order.keys:
        return None
    key = order.keys[0]
    if not isinstance(key, Field):
        return None
    return _Numbering(key.index, order.directions[0] in DESCENDING, order.partitions)


def _rank_column(plan: Plan, index: int, ranks: int, keys: tuple[Expr, ...]) -> Plan | None:
    """``plan`` with its column ``index`` ranked among the rows with equal ``keys``; None if it is
    no such call, or if another column reads it."""
    if isinstance(plan, Block):
        exprs, source = plan.select, plan.source
    elif isinstance(plan, Rel) and plan.kind == "project":
        exprs, source = plan.exprs, plan.inputs[0]
    else:
        return None
    own = exprs[index]
    others = [part for i, e in enumerate(exprs) if i != index for part in walk(e)]
    if any(map(has_window, exprs)) or own in others:
        return None
    keys = tuple(inline(key, exprs) for key in keys)
    if isinstance(own, Field):
        below = _rank_column(source, own.index, ranks, keys) if keeps_rows(plan) else None
        return None if below is None else plan.with_inputs(below)
    ranked = _among_equal(own, plan, ranks, keys)
    if ranked is None:
        return None
    exprs = (*exprs[:index], ranked, *exprs[index + 1 :])
    return replace(plan, select=exprs) if isinstance(plan, Block) else replace(plan, exprs=exprs)


def _among_equal(own: Expr, plan: Rel | Block, ranks: int, keys: tuple[Expr, ...]) -> Ask | None:
    if not isinstance(own, Ask) or own.domain is None:
        return None
    if any(needs_model(key) or is_volatile(key) or key.rels for key in keys):
        return None
    call = with_ranks(own.call, ranks)
    if call is None:
        return None
    args = (*own.args, *keys)
    if keeps_rows(plan) and own.domain.inputs == plan.inputs:
        return Ask(call, args, distinct(plan.inputs[0], *args))
    if in_domain(plan, own):
        assert isinstance(plan, Block)
        return Ask(call, args, distinct(replace(plan, select=args), *all_fields(len(args))))
    return None
