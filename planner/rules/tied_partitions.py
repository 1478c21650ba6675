"""Asks for an answer that numbers the rows of partitions only where it decides between rows.

before: ``filter n <= k`` over ``row_number() OVER (PARTITION BY g ORDER BY a, llm(x)) AS n``
after:  the same over ``CASE WHEN … THEN llm(x) END``, where the rows of a partition with equal
        ``a`` differ in ``x``, and are not behind the first ``k``; also of ``rank`` and
        ``dense_rank``
before: ``first_value(v) OVER (PARTITION BY g ORDER BY a, llm(x))``, and such an aggregate by ``g``,
        also of last_value
after:  the same, where the first rows of a partition by ``a`` differ in ``x``
safe:   rows with the same ``x`` have the same answer, and so the same numbers whatever it is; rows
        behind the first ``k`` by ``a`` are not among these (see ``tied_rows``). Nothing but windows
        of the same order reads the answers there; a result that shows them has them from above.
"""

from __future__ import annotations

from blendfusion.planner.ir.aggregates import Aggregation, order_of_first
from blendfusion.planner.ir.nodes import (
    Field,
    Plan,
    Rel,
    all_fields,
    below_projections,
    conjuncts,
    has_window,
    inline,
    windows,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.ir.windows import first_ranks
from blendfusion.planner.needs.tied_answers import Order, Places, spare_in_groups
from blendfusion.planner.needs.tied_numbers import is_first, spare_numbers


def tied_partitions(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or not asks_anything(plan):
        return plan
    if plan.kind == "aggregate":
        return spare_in_groups(plan, _order_read) or plan
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


def _order_read(agg: Aggregation) -> Order | None:
    """The order of whose first row all aggregates have the value."""
    orders = {order_of_first(measure) for measure in agg.measures}
    order = orders.pop() if len(orders) == 1 else None
    if order is None or not agg.one_group_a_row or any(m.filter for m in agg.measures):
        return None
    others = [*agg.keys, *(e for m in agg.measures for e in m.exprs[m.n_sorts :])]
    return order[0], others, Places(order[1], agg.keys, end=1)
