"""Asks for an answer that orders rows only where it decides between rows.

before: ``limit k offset m`` over ``sort by a, llm(x), b`` over ``block(t) select …, llm(x)``
after:  the same with ``CASE WHEN n <= k + m AND e > m AND … THEN llm(x) END``, where the rows with
        equal ``a`` have the places from ``n`` to ``e`` in the order of ``a``, and differ in ``x``;
        over the rows of ``t`` with ``n <= k + m``. A result that shows ``llm(x)`` computes it
        above, where it is not known yet. Likewise ``llm(y)`` of a further key
safe:   rows with the same ``x`` are equal in ``llm(x)`` whatever it is, and rows that the limit
        leaves out together need no order. A block's predicates come first: they are
        asked for rows in the order of ``a``, until k + m pass, and for those with an equal ``a``;
        ``t`` is then read twice, and must have the same rows each time.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import fetch_bounds, limit_rows, project
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Plan,
    Rel,
    StoredRows,
    below_projections,
    block_below,
    inline,
    is_volatile,
    needs_model,
    substitute,
)
from blendfusion.planner.ir.sorts import directions_of
from blendfusion.planner.ir.traversal import Change, asks_anything, from_top, with_subplans
from blendfusion.planner.needs.tied_answers import Places, candidates, spares_answers, with_answers


def tied_rows(plan: Plan) -> Plan:
    """The whole plan."""
    return from_top(plan, _tied_rows) if "sort" in plan.kinds else plan


def _tied_rows(plan: Plan, below: Change) -> Plan:
    if isinstance(plan, StoredRows) or not asks_anything(plan):
        return plan
    return _with_fewer_answers(plan, below) or with_subplans(plan, below)


def _with_fewer_answers(plan: Plan, change: Change) -> Plan | None:
    """A sort or a limit over one, perhaps below a projection or a block, that needs fewer answers,
    over what ``change`` makes of the relations below; None of other relations."""
    upper = plan if isinstance(plan, Block) else None
    below = plan if upper is None else upper.source
    shown, sort, places = _order_of(below)
    if sort is None:
        return None
    found = block_below(sort.inputs[0])
    if found is None or "set" in found[1].source.kinds:
        return None  # DataFusion refuses windows over branches in which a key is constant
    columns, block = found
    keys = tuple(inline(e, columns) for e in sort.exprs)
    shown = tuple(inline(e, columns) for e in shown)
    if upper is not None:
        shown = tuple(inline(e, shown) for e in upper.exprs)
    if not spares_answers(keys) or any(is_volatile(e) or e.rels for e in (*keys, *shown)):
        return None
    rows = candidates(block.with_inputs(change(block.source)), keys, places)
    rows, known, answers = with_answers(rows, keys, places)
    exprs = tuple(substitute(k, known.get) for k in keys)
    new: Plan = replace(sort, inputs=(rows,), exprs=exprs, width=rows.width)
    if places.offset or places.end is not None:
        count = None if places.end is None else places.end - places.offset
        new = limit_rows(new, places.offset, count)
    shown = tuple(substitute(e, answers.get) for e in shown)
    if upper is not None:
        n = len(upper.where)
        return replace(upper, source=new, where=shown[:n], select=shown[n:])
    return Block(new, (), shown) if any(map(needs_model, shown)) else project(new, shown)


def _order_of(plan: Plan) -> tuple[tuple[Expr, ...], Rel | None, Places]:
    """(the columns of a sort, or of limits and projections over one, the sort, the places wanted of
    it); None for it of other relations."""
    columns, below = below_projections(plan)
    offset, end = 0, None
    while isinstance(below, Rel) and below.kind == "fetch":
        skipped, count = fetch_bounds(below)
        ends = [e for e in (end, count) if e is not None]
        offset, end = offset + skipped, min(ends) + skipped if ends else None
        inner, below = below_projections(below.inputs[0])
        columns = tuple(inline(e, inner) for e in columns)
    if not isinstance(below, Rel) or below.kind != "sort":
        return columns, None, Places(())
    return columns, below, Places(directions_of(below), offset=offset, end=end)
