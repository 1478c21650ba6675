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

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from blendfusion.planner.ir.aggregates import aggregate, aggregation, order_of_first
from blendfusion.planner.ir.nodes import (
    Block,
    Direction,
    Expr,
    Field,
    Plan,
    Rel,
    Take,
    all_fields,
    below_projections,
    conjuncts,
    has_window,
    inline,
    is_volatile,
    may_move,
    needs_model,
    substitute,
    windows,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.ir.windows import first_ranks
from blendfusion.planner.needs.plans import plain, with_takes
from blendfusion.planner.needs.tied_answers import Places, spares_answers, with_answers
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
    agg = aggregation(plan)
    orders = {order_of_first(measure) for measure in agg.measures}
    if not agg.one_group_a_row or len(orders) != 1 or any(m.filter for m in agg.measures):
        return plan
    columns, block = below_projections(plan.inputs[0])
    order = orders.pop()
    if order is None or not isinstance(block, Block) or block.once or not may_move(block):
        return plan
    columns = tuple(inline(e, block.select) for e in columns)
    by, groups = (tuple(inline(e, columns) for e in part) for part in (order[0], agg.keys))
    exprs = [tuple(inline(e, columns) for e in m.exprs) for m in agg.measures]
    args = [e for m, own in zip(agg.measures, exprs, strict=True) for e in own[m.n_sorts :]]
    if not spares_answers(by) or any(map(needs_model, (*groups, *args))):
        return plan
    if "set" in block.source.kinds or any(is_volatile(e) or e.rels for e in (*by, *groups, *args)):
        return plan  # as in tied_rows
    rows = _candidates(block, groups, by, order[1])
    rows, known, _ = with_answers(rows, by, Places(order[1], groups, end=1))
    measures = tuple(
        replace(m, exprs=tuple(substitute(e, known.get) for e in own))
        for m, own in zip(agg.measures, exprs, strict=True)
    )
    return aggregate(rows, replace(agg, keys=groups, measures=measures))


def _candidates(
    block: Block, groups: tuple[Expr, ...], by: tuple[Expr, ...], directions: Sequence[Direction]
) -> Plan:
    """The rows of a block, without those that the keys before the first answer leave out: of each
    group, only the first one that passes, and those that equal it, have the first place."""
    if not block.where:
        return block.source
    cheap = tuple(takewhile(lambda key: not needs_model(key), by))
    rows = replace(block, select=all_fields(block.source.width))
    if not cheap:
        return rows
    take = Take(1, groups, cheap, tuple(directions[: len(cheap)]), ties=len(cheap))
    own = plain(take)
    return rows if own is None else with_takes(rows, [own])
