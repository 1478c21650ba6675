"""Asks for an answer that numbers the rows of partitions only where it decides between rows.

before: ``filter n <= k`` over ``row_number() OVER (PARTITION BY g ORDER BY a, llm(x)) AS n``
after:  the same over ``CASE WHEN … THEN llm(x) END``, where the rows of a partition with equal
        ``a`` are several, and not behind the first ``k``; also of ``rank`` and ``dense_rank``
safe:   a row that is alone with its ``a`` has the same number whatever its answer is, and rows
        behind the first ``k`` by ``a`` are not among these (see ``tied_rows``). Nothing but windows
        of the same order reads the answers there; a result that shows them has them from above.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import boolean_literal, filtered, projected
from blendfusion.planner.ir.nodes import (
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
    may_move,
    needs_model,
    shift,
    substitute,
    windows,
)
from blendfusion.planner.ir.windows import WindowOrder, order_of
from blendfusion.planner.rules.first_rows import below_projections
from blendfusion.planner.rules.ranked_limits import NUMBERS, first_ranks
from blendfusion.planner.rules.tied_rows import Places, spares_answers, with_answers


def tied_partitions(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "filter":
        return plan
    columns, numbered = below_projections(plan.inputs[0])
    if not isinstance(numbered, Rel) or not any(map(has_window, numbered.exprs)):
        return plan
    terms = tuple(inline(term, columns) for term in conjuncts(plan.exprs[0]))
    for term in terms:
        number, wanted = first_ranks(term)
        if isinstance(number, Field) and wanted >= 1:
            new = _spared(numbered, numbered.exprs[number.index], wanted, terms, columns)
            if new is not None:
                return new
    return plan


def numbering(expr: Expr) -> WindowOrder | None:
    """The order in which ``expr`` numbers the rows of each partition; None if it does not."""
    return order_of(expr) if isinstance(expr, Node) and expr.name in NUMBERS else None


def _spared(
    numbered: Rel, number: Expr, end: int, terms: tuple[Expr, ...], columns: tuple[Expr, ...]
) -> Plan | None:
    """The ``columns`` of the rows of windows that meet ``terms``, of which one is true only for the
    first ``end`` rows by ``number``; None if it numbers them by no answers that can be spared."""
    below, block = below_projections(numbered.inputs[0])
    if not isinstance(block, Block) or block.once or not may_move(block):
        return None
    below = tuple(inline(e, block.select) for e in below)
    exprs = tuple(inline(e, below) for e in numbered.exprs)
    order = numbering(inline(number, below))
    if order is None or not spares_answers(order.keys):
        return None
    if any(is_volatile(e) or e.rels for e in exprs):
        return None
    if not all(numbering(w) == order for e in exprs for w in windows(e) if needs_model(w)):
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

    def placed(expr: Expr) -> Expr:
        return substitute(substitute(expr, known.get), ranked_by.get)

    n = len(exprs)
    shown = tuple(boolean_literal(True) if i in hidden else placed(e) for i, e in enumerate(exprs))
    if any(map(needs_model, shown)):
        return None
    kept = filtered(projected(rows, (*shown, *all_fields(rows.width))), terms)

    def above(i: int) -> Expr:
        if i not in hidden:
            return Field(i)
        return shift(substitute(substitute(exprs[i], known.get), answers.get), n)

    result = tuple(inline(e, tuple(map(above, range(n)))) for e in columns)
    return Block(kept, (), result) if any(map(needs_model, result)) else projected(kept, result)
