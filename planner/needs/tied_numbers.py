"""Answers by which windows number rows, only where they decide between rows."""

from __future__ import annotations

from dataclasses import replace

from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.builders import boolean_literal, filter_rows, project
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    block_below,
    fields,
    has_window,
    inline,
    is_volatile,
    needs_model,
    shift,
    substitute,
    windows,
)
from blendfusion.planner.ir.windows import WindowOrder, numbering, order_of
from blendfusion.planner.needs.tied_answers import Places, spares_answers, with_answers


def _places(expr: Expr) -> WindowOrder | None:
    """The order by which ``expr`` numbers the rows of each partition, or of whose first row it has
    the value; None if it does neither."""
    order = numbering(expr)
    if order is not None or not isinstance(expr, Node) or not is_first(expr):
        return order
    order = order_of(expr)
    args = expr.children[len(order.partitions) + len(order.keys) :]
    return None if any(map(needs_model, args)) else order


def is_first(window: Expr) -> bool:
    """Whether a window has the value of the first row of each partition."""
    if not isinstance(window, Node) or window.name != "window:first_value":
        return False
    function = ExpressionMessage.FromString(window.template).window_function
    bounds = (function.lower_bound.WhichOneof("kind"), function.upper_bound.WhichOneof("kind"))
    return bounds[0] == "unbounded" and bounds[1] in ("unbounded", "current_row", "following")


def spare_numbers(
    numbered: Rel, number: Expr, end: int | None, terms: tuple[Expr, ...], columns: tuple[Expr, ...]
) -> Plan | None:
    """A plan for ``columns`` of the rows of ``numbered`` that meet ``terms`` and whose ``number``
    is at most ``end`` (None: any number), which asks about fewer rows; None if the order of the
    numbers has no answers that can be spared."""
    found = block_below(numbered.inputs[0])
    if found is None:
        return None
    below, block = found
    exprs = tuple(inline(e, below) for e in numbered.exprs)
    order = _places(inline(number, below))
    if order is None or not spares_answers(order.keys):
        return None
    if any(is_volatile(e) or e.rels for e in exprs):
        return None
    asking = [w for e in exprs for w in windows(e) if needs_model(w)]
    if not all(_places(w) == order and is_first(w) == is_first(number) for w in asking):
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
