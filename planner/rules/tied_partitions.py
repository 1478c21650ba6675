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

from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.aggregates import aggregate, aggregation, order_of_first
from blendfusion.planner.ir.builders import boolean_literal, filter_rows, project
from blendfusion.planner.ir.nodes import (
    Block,
    Direction,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    Take,
    all_fields,
    below_projections,
    conjuncts,
    fields,
    has_window,
    inline,
    is_volatile,
    may_move,
    needs_model,
    shift,
    substitute,
    windows,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.ir.windows import WindowOrder, first_ranks, numbering, order_of
from blendfusion.planner.needs.plans import plain, with_takes
from blendfusion.planner.rules.tied_rows import Places, spares_answers, with_answers


def tied_partitions(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or not asks_anything(plan):
        return plan
    if plan.kind == "aggregate":
        return _aggregate(plan)
    if plan.kind == "project":
        own = next((w for e in plan.exprs for w in windows(e) if _is_first(w)), None)
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


def _places(expr: Expr) -> WindowOrder | None:
    """The order by which ``expr`` numbers the rows of each partition, or of whose first row it has
    the value; None if it does neither."""
    order = numbering(expr)
    if order is not None or not isinstance(expr, Node) or not _is_first(expr):
        return order
    order = order_of(expr)
    args = expr.children[len(order.partitions) + len(order.keys) :]
    return None if any(map(needs_model, args)) else order


def _is_first(window: Expr) -> bool:
    """Whether a window has the value of the first row of each partition."""
    if not isinstance(window, Node) or window.name != "window:first_value":
        return False
    function = ExpressionMessage.FromString(window.template).window_function
    bounds = (function.lower_bound.WhichOneof("kind"), function.upper_bound.WhichOneof("kind"))
    return bounds[0] == "unbounded" and bounds[1] in ("unbounded", "current_row", "following")


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


def spare_numbers(
    numbered: Rel, number: Expr, end: int | None, terms: tuple[Expr, ...], columns: tuple[Expr, ...]
) -> Plan | None:
    """The ``columns`` of the rows of windows that meet ``terms``, of which one is true only for the
    first ``end`` rows by ``number``, or for all; None if it numbers them by no answers that can be
    spared."""
    below, block = below_projections(numbered.inputs[0])
    if not isinstance(block, Block) or block.once or not may_move(block):
        return None
    below = tuple(inline(e, block.select) for e in below)
    exprs = tuple(inline(e, below) for e in numbered.exprs)
    order = _places(inline(number, below))
    if order is None or not spares_answers(order.keys):
        return None
    if any(is_volatile(e) or e.rels for e in exprs):
        return None
    found = [w for e in exprs for w in windows(e) if needs_model(w)]
    if not all(_places(w) == order and _is_first(w) == _is_first(number) for w in found):
        return None
    hidden = {i for i, e in enumerate(exprs) if needs_model(e) and not has_window(e)}
    if any(fields(term) & hidden for term in terms):
        return None
    width = block.source.width
    own = dict.fromkeys(e for e in order.partitions if needs_model(e))
    known: dict[Expr, Expr] = {e: Field(width + i) for i, e in enumerate(own)}
    rows: Plan = block.source
    if own or block.where:
        rows = replace(block, select=(*all_fields(width), *own))
    parts, keys = (
        tuple(substitute(e, known.get) for e in part) for part in (order.partitions, order.keys)
    )
    by = "dense_rank" if isinstance(number, Node) and number.name.endswith("dense_rank") else "rank"
    places = Places(order.directions, parts, end=end, by=by)
    rows, ranked_by, answers = with_answers(rows, keys, places)

    def place(expr: Expr) -> Expr:
        return substitute(substitute(expr, known.get), ranked_by.get)

    n = len(exprs)
    shown = tuple(boolean_literal(True) if i in hidden else place(e) for i, e in enumerate(exprs))
    if any(map(needs_model, shown)):
        return None
    kept = filter_rows(project(rows, (*shown, *all_fields(rows.width))), terms)

    def above(i: int) -> Expr:
        if i not in hidden:
            return Field(i)
        return shift(substitute(substitute(exprs[i], known.get), answers.get), n)

    result = tuple(inline(e, tuple(map(above, range(n)))) for e in columns)
    return Block(kept, (), result) if any(map(needs_model, result)) else project(kept, result)
