"""Asks for an answer that numbers or groups rows only where the keys before it do not tell rows
apart.

before: ``row_number() OVER (ORDER BY a, llm(x))``, and ``aggregate count(*) by a, llm(x)`` whose
        answers nothing shows
after:  the same with ``CASE WHEN … THEN llm(x) END``, where several rows have an equal ``a``
safe:   a row that is alone with its ``a`` has the same number whatever its answer is, and is a
        group of its own (see ``tied_rows``).
"""

from __future__ import annotations

from blendfusion.planner.ir.aggregates import aggregate, aggregation
from blendfusion.planner.ir.lineage import may_be_real
from blendfusion.planner.ir.nodes import (
    Block,
    Node,
    Plan,
    Rel,
    all_fields,
    below_projections,
    block_below,
    fields,
    has_window,
    inline,
    is_volatile,
    needs_model,
    substitute,
    windows,
)
from blendfusion.planner.ir.sorts import ASC
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.ir.windows import numbering, order_of
from blendfusion.planner.needs.tied_answers import Places, candidates, spares_answers, with_answers
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
    new = _spare_keys(grouped, set().union(*map(fields, plan.exprs)))
    return plan if new is None else plan.with_inputs(new)


def _is_gated(number: Node, rows: Plan) -> bool:
    """Whether an answer that numbers ``rows`` is asked for on some of them only already."""
    columns, block = below_projections(rows)
    if not isinstance(block, Block):
        return True
    keys = (inline(inline(key, columns), block.select) for key in order_of(number).keys)
    return any(isinstance(key, Node) and key.name == "if_then" and needs_model(key) for key in keys)


def _spare_keys(plan: Rel, read: set[int]) -> Plan | None:
    """An aggregate of which only the columns ``read`` are shown; None if no answer is spared."""
    found = block_below(plan.inputs[0])
    if found is None or "set" in found[1].source.kinds:
        return None  # as in tied_rows
    columns, block = found
    agg = aggregation(plan).change(lambda e: inline(e, columns))
    others = [e for m in agg.measures for e in m.exprs]
    shown = [agg.keys[i] for i in read if i < len(agg.keys)]
    if not agg.has_one_grouping or any(map(needs_model, (*shown, *others))):
        return None
    by = tuple(sorted(agg.keys, key=needs_model))
    if not spares_answers(by) or any(is_volatile(e) or e.rels for e in (*by, *others)):
        return None
    if any(may_be_real(key, block.source) for key in by if not needs_model(key)):
        return None
    places = Places((ASC,) * len(by))
    rows, known, _ = with_answers(candidates(block, by, places), by, places)
    return aggregate(rows, agg.change(lambda e: substitute(e, known.get)))
