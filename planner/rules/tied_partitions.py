"""Asks for an answer that numbers the rows of partitions only where it decides between rows.

before: ``filter n <= k`` over ``row_number() OVER (PARTITION BY g ORDER BY a, llm(x)) AS n``
after:  the same over ``CASE WHEN … THEN llm(x) END``, where the rows of a partition with equal
        ``a`` are several, and not behind the first ``k``; also of ``rank`` and ``dense_rank``
before: ``first_value(v) OVER (PARTITION BY g ORDER BY a, llm(x))``, and such an aggregate by ``g``,
        also of last_value
after:  the same, where the first rows of a partition by ``a`` are several
safe:   a row that is alone with its ``a`` has the same number whatever its answer is, and rows
        behind the first ``k`` by ``a`` are not among these (see ``tied_rows``). Nothing but windows
        of the same order reads the answers there; a result that shows them has them from above.
"""

from __future__ import annotations

from blendfusion.planner.ir.aggregates import aggregate, aggregation, order_of_first
from blendfusion.planner.ir.lineage import may_be_real
from blendfusion.planner.ir.nodes import (
    Field,
    Plan,
    Rel,
    all_fields,
    below_projections,
    block_below,
    conjuncts,
    has_window,
    inline,
    is_volatile,
    needs_model,
    substitute,
    windows,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.ir.windows import first_ranks
from blendfusion.planner.needs.tied_answers import Places, candidates, spares_answers, with_answers
from blendfusion.planner.needs.tied_numbers import is_first, spare_numbers


def tied_partitions(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or not asks_anything(plan):
        return plan
    if plan.kind == "aggregate":
        return _aggregate(plan)
    if plan.kind == "project":
        own = next((w for e in plan.exprs for w in windows(e) if is_first(w)), None)
        new = None if own is None else spare_numbers(plan, own, 1, (), all_fields(plan.width))
        return plan if new is None else new
    if plan.kind != "filter":
        return plan
    columns, numbered = below_projections(plan.inputs[0])
    if not isinstance(numbered, Rel) or not any(map(has_window, numbered.exprs)):
        return plan
    terms = tuple(inline(term, columns) for term in conjuncts(plan.exprs[0]))
    for term in terms:
        number, wanted = first_ranks(term)
        if isinstance(number, Field) and wanted >= 1:
            new = spare_numbers(numbered, numbered.exprs[number.index], wanted, terms, columns)
            if new is not None:
                return new
    return plan


def _aggregate(plan: Rel) -> Plan:
    found = block_below(plan.inputs[0])
    if found is None or "set" in found[1].source.kinds:
        return plan  # as in tied_rows
    columns, block = found
    agg = aggregation(plan).change(lambda e: inline(e, columns))
    orders = {order_of_first(measure) for measure in agg.measures}
    if not agg.one_group_a_row or len(orders) != 1 or any(m.filter for m in agg.measures):
        return plan
    order = orders.pop()
    if order is None or not spares_answers(order[0]):
        return plan
    by, others = order[0], [*agg.keys, *(e for m in agg.measures for e in m.exprs[m.n_sorts :])]
    if any(map(needs_model, others)) or any(is_volatile(e) or e.rels for e in (*by, *others)):
        return plan
    if any(may_be_real(key, block.source) for key in agg.keys):
        return plan
    places = Places(order[1], agg.keys, end=1)
    rows, known, _ = with_answers(candidates(block, by, places), by, places)
    return aggregate(rows, agg.change(lambda e: substitute(e, known.get)))
