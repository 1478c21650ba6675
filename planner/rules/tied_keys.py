"""Asks for an answer that numbers or groups rows only where the keys before it do not tell rows
apart.

before: ``row_number() OVER (ORDER BY a, llm(x))``, and ``aggregate count(*) by a, llm(x)`` whose
        answers nothing shows
after:  the same with ``CASE WHEN … THEN llm(x) END``, where rows with an equal ``a`` differ in
        ``x``
safe:   rows with the same ``x`` have the same answer: they have the same numbers whatever it is,
        and are one group by ``a`` (see ``tied_rows``).
"""

from __future__ import annotations

from functools import partial

from blendfusion.planner.ir.aggregates import Aggregation
from blendfusion.planner.ir.nodes import (
    Block,
    Node,
    Plan,
    Rel,
    all_fields,
    below_projections,
    fields,
    has_window,
    inline,
    needs_model,
    windows,
)
from blendfusion.planner.ir.sorts import ASC
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.ir.windows import numbering, order_of
from blendfusion.planner.needs.tied_answers import Order, Places, spare_in_groups
from blendfusion.planner.needs.tied_numbers import spare_numbers


def tied_keys(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "project" or not asks_anything(plan):
        return plan
    if any(map(has_window, plan.exprs)):
        found = (w for e in plan.exprs for w in windows(e) if isinstance(w, Node))
        own = next((w for w in found if numbering(w)), None)
        if own is None or _is_gated(own, plan.inputs[0]):
            return plan
        return spare_numbers(plan, own, None, (), all_fields(plan.width)) or plan
    grouped = plan.inputs[0]
    if not isinstance(grouped, Rel) or grouped.kind != "aggregate":
        return plan
    read = set().union(*map(fields, plan.exprs))
    new = spare_in_groups(grouped, partial(_keys_read, read=read))
    return plan if new is None else plan.with_inputs(new)


def _is_gated(number: Node, rows: Plan) -> bool:
    """Whether an answer that numbers ``rows`` is asked for on some of them only already."""
    columns, block = below_projections(rows)
    if not isinstance(block, Block):
        return True
    keys = (inline(inline(key, columns), block.select) for key in order_of(number).keys)
    return any(isinstance(key, Node) and key.name == "if_then" and needs_model(key) for key in keys)


def _keys_read(agg: Aggregation, read: set[int]) -> Order | None:
    """The order of the keys of groups of which only the columns ``read`` are shown."""
    shown = [agg.keys[i] for i in read if i < len(agg.keys)]
    if not agg.has_one_grouping or any(map(needs_model, shown)):
        return None
    by = tuple(sorted(agg.keys, key=needs_model))
    return by, [e for m in agg.measures for e in m.exprs], Places((ASC,) * len(by))
