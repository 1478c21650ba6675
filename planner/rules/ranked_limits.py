"""Tells a call that ranks values how many ranks a limit or a filter wants, also of each partition.

before: ``limit k`` over ``sort by prefers(x)``; ``filter r <= k`` over ``prefers(x) AS r``, or over
        ``row_number() OVER (ORDER BY prefers(x)) AS r``
after:  the same over ``prefers(x, k)``; ``-k`` where the order descends
before: ``filter n <= k`` over ``row_number() OVER (PARTITION BY g ORDER BY prefers(x)) AS n``
after:  the same over ``prefers(x, k)`` among the values with an equal ``g``
safe:   the first k rows have the first k ranks at most, since each rank belongs to one value, and
        all other values share a rank behind these. Nothing between the limit and the call drops
        rows: predicates of the call's block must stand in its domain, too. Nothing but the sort,
        the filter and windows that number rows in this order reads the ranks of the other rows;
        nor any rank, where they are of partitions: it says nothing about other partitions.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.aggregates import distinct
from blendfusion.planner.ir.builders import fetch_bounds
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
    substitute,
    walk,
)
from blendfusion.planner.ir.ranked_rows import in_domain, keeps_rows
from blendfusion.planner.ir.sorts import DESCENDING
from blendfusion.planner.ir.windows import NUMBERS, first_ranks, order_of
from blendfusion.udfs.declare.top_ranks import with_ranks


@dataclass(frozen=True, slots=True)
class _Order:
    """How rows are numbered: by a column, in partitions if there are any."""

    column: Field
    descending: bool = False
    partitions: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class _RankedPlan:
    """A plan with its call limited, and those of its columns that are ranks in partitions."""

    plan: Plan
    ranks: frozenset[int] = frozenset()


def ranked_limits(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    if plan.kind == "fetch":
        offset, count = fetch_bounds(plan)
        below = _below(plan.inputs[0], offset + count) if count else None
        return plan if below is None else plan.with_inputs(below)
    if plan.kind == "filter":
        return _ranked_filter(plan, {*range(plan.width)}) or plan
    below = plan.inputs[0] if plan.kind == "project" else None
    if not isinstance(below, Rel) or below.kind != "filter":
        return plan
    new = _ranked_filter(below, set().union(*map(fields, plan.exprs)))
    return plan if new is None else plan.with_inputs(new)


def _ranked_filter(plan: Rel, read: Set[int]) -> Plan | None:
    """A filter over ranks with their call limited; ``read``: the columns that are read above."""
    for term in conjuncts(plan.exprs[0]):
        rank, wanted = first_ranks(term)
        if wanted < 1:
            continue
        if isinstance(rank, Field):
            found = _rank_numbers(plan.inputs[0], rank.index, wanted)
            if found is not None and not found.ranks & (read | fields(plan.exprs[0])):
                return plan.with_inputs(found.plan)
        limited = _limit_call(rank, wanted)
        if limited is not None:
            return replace(plan, exprs=(_in_place(plan.exprs[0], rank, limited),))
    return None


def _rank_numbers(plan: Plan, index: int, wanted: int) -> _RankedPlan | None:
    """``plan`` with the call limited whose ranks are the column ``index``, or by whose order rows
    are numbered there; None if it is neither."""
    exprs = plan.exprs if isinstance(plan, Rel) and plan.kind == "project" else ()
    own, found = exprs[index] if exprs else None, None
    if any(map(has_window, exprs)):
        order = _order(own) or (_Order(own) if isinstance(own, Field) else None)
        if order is None or any(has_window(e) and _order(e) != order for e in exprs):
            return None
        column, keys = order.column.index, order.partitions
        below = _column(plan.inputs[0], column, -wanted if order.descending else wanted, keys)
        if below is not None and not any(column in fields(key) for key in keys):
            found = _RankedPlan(below, frozenset({column} if keys else ()))
    elif isinstance(own, Field):
        found = _rank_numbers(plan.inputs[0], own.index, wanted)
    else:
        below = _column(plan, index, wanted)
        return None if below is None else _RankedPlan(below)
    if found is None or not isinstance(plan, Rel):
        return None
    reads = {i: e for i, e in enumerate(exprs) if found.ranks & fields(e)}
    if not all(isinstance(e, Field) or has_window(e) for e in reads.values()):
        return None
    shown = frozenset(i for i, e in reads.items() if isinstance(e, Field))
    return _RankedPlan(plan.with_inputs(found.plan), shown)


def _order(expr: Expr | None) -> _Order | None:
    """How ``expr`` numbers rows; None for another expression."""
    if not isinstance(expr, Node) or expr.name not in NUMBERS:
        return None
    order = order_of(expr)
    key = order.keys[0] if order.keys else None
    if not isinstance(key, Field):
        return None
    return _Order(key, order.directions[0] in DESCENDING, order.partitions)


def _below(plan: Plan, wanted: int) -> Plan | None:
    """``plan`` with its sort limited; None if there is nothing to limit."""
    if isinstance(plan, Rel) and plan.kind == "sort":
        return _limit_sort(plan, wanted)
    if not keeps_rows(plan):
        return None
    assert isinstance(plan, Rel | Block)
    below = _below(plan.inputs[0], wanted)
    return None if below is None else plan.with_inputs(below)


def _limit_sort(sort: Rel, wanted: int) -> Plan | None:
    direction = RelMessage.FromString(sort.template).sort.sorts[0].direction
    ranks = -wanted if direction in DESCENDING else wanted
    key = sort.exprs[0]
    if isinstance(key, Field):
        source = _column(sort.inputs[0], key.index, ranks)
        return None if source is None else sort.with_inputs(source)
    found = _limit_call(key, ranks)
    return None if found is None else replace(sort, exprs=(found, *sort.exprs[1:]))


def _column(plan: Plan, index: int, ranks: int, keys: tuple[Expr, ...] = ()) -> Plan | None:
    """``plan`` with the call of one of its columns limited, among the rows with equal ``keys``;
    None if the column is none, or if another one reads its ranks in partitions."""
    if not isinstance(plan, Block) and not keeps_rows(plan):
        return None
    assert isinstance(plan, Rel | Block)
    exprs = plan.select if isinstance(plan, Block) else plan.exprs
    own = exprs[index]
    keys = tuple(inline(key, exprs) for key in keys)
    if keys and any(own in walk(e) for i, e in enumerate(exprs) if i != index):
        return None
    if isinstance(own, Field):
        below = _column(plan.inputs[0], own.index, ranks, keys) if keeps_rows(plan) else None
        return None if below is None else plan.with_inputs(below)
    new = _limit_call(own, ranks)
    if new is not None and keys:
        new = _among_equal(new, plan, keys)
    if new is None or not (keys or keeps_rows(plan) or in_domain(plan, new)):
        return None
    changed = tuple(_in_place(e, own, new) for e in exprs)
    if isinstance(plan, Block):
        return replace(plan, select=changed)
    return replace(plan, exprs=changed)


def _among_equal(own: Ask, plan: Rel | Block, keys: tuple[Expr, ...]) -> Ask | None:
    """A call of ``plan`` among the values whose rows have equal ``keys``."""
    if own.domain is None or any(needs_model(k) or is_volatile(k) or k.rels for k in keys):
        return None
    args = (*own.args, *keys)
    if keeps_rows(plan) and own.domain.inputs == plan.inputs:
        return Ask(own.call, args, distinct(plan.inputs[0], *args))
    if isinstance(plan, Block) and in_domain(plan, own):
        return Ask(own.call, args, distinct(replace(plan, select=args), *all_fields(len(args))))
    return None


def _in_place(expr: Expr, own: Expr, new: Expr) -> Expr:
    return substitute(expr, lambda part: new if part == own else None)


def _limit_call(expr: Expr, ranks: int) -> Ask | None:
    found = with_ranks(expr.call, ranks) if isinstance(expr, Ask) else None
    return replace(expr, call=found) if found and isinstance(expr, Ask) else None
