"""Tells a call that ranks values how many ranks a limit or a filter wants.

before: ``limit k`` over ``sort by prefers(x)``; ``filter r <= k`` over ``prefers(x) AS r``, or over
        ``row_number() OVER (ORDER BY prefers(x)) AS r``
after:  the same over ``prefers(x, k)``; ``-k`` where the order descends
safe:   the first k rows have the first k ranks at most, since each rank belongs to one value, and
        all other values share a rank behind these. Nothing between the limit and the call drops
        rows: predicates of the call's block must stand in its domain, too. Nothing but the sort,
        the filter and windows that number rows in this order reads the ranks of the other rows.
"""

from __future__ import annotations

from dataclasses import replace

from substrait.proto import Rel as RelMessage
from substrait.proto import SortField

from blendfusion.planner.ir.builders import fetch_bounds, literal
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    conjuncts,
    has_window,
    substitute,
)
from blendfusion.planner.ir.traversal import subplans
from blendfusion.planner.ir.windows import WindowOrder, order_of
from blendfusion.udfs.declare.top_ranks import with_ranks

DESCENDING = (
    SortField.SORT_DIRECTION_DESC_NULLS_FIRST,
    SortField.SORT_DIRECTION_DESC_NULLS_LAST,
)


NUMBERS = ("window:row_number", "window:rank", "window:dense_rank")
_AT_MOST = {"lte": 0, "lt": -1, "equal": 0}
"""Comparisons of a rank with a number that hold for first ranks only, and what to add to it."""
_TURNED = {"gte": "lte", "gt": "lt", "equal": "equal"}


def ranked_limits(plan: Plan) -> Plan:
    if isinstance(plan, Rel) and plan.kind == "filter":
        return _ranked_filter(plan)
    if not isinstance(plan, Rel) or plan.kind != "fetch":
        return plan
    offset, count = fetch_bounds(plan)
    if not count:
        return plan
    below = _below(plan.inputs[0], offset + count)
    return plan if below is None else plan.with_inputs(below)


def _ranked_filter(plan: Rel) -> Plan:
    for term in conjuncts(plan.exprs[0]):
        rank, wanted = first_ranks(term)
        if wanted < 1:
            continue
        if isinstance(rank, Field):
            source = _numbered(plan.inputs[0], rank.index, wanted)
            if source is not None:
                return plan.with_inputs(source)
        limited = _limited(rank, wanted)
        if limited is not None:
            return replace(plan, exprs=(_in_place(plan.exprs[0], rank, limited),))
    return plan


def first_ranks(term: Expr) -> tuple[Expr, int]:
    """(a rank, the number of first ranks for which ``term`` may hold; 0 if it tells none)"""
    if not isinstance(term, Node) or not term.children:
        return term, 0
    if term.name == "or":  # a short IN is one
        rank, most = first_ranks(term.children[0])
        for child in term.children[1:]:
            own, wanted = first_ranks(child) if most else (rank, 0)
            most = max(most, wanted) if wanted and own == rank else 0
        return rank, most
    rank, *others = term.children
    numbers = [literal(other) for other in others]
    if term.name == "singular_or_list":
        whole = [number for number in numbers if type(number) is int]
        return rank, max(whole) if len(whole) == len(numbers) else 0
    name: str | None = term.name
    if len(others) == 1 and numbers == [None]:
        rank, numbers, name = others[0], [literal(rank)], _TURNED.get(term.name)
    if name not in _AT_MOST or len(numbers) != 1 or type(numbers[0]) is not int:
        return term, 0
    return rank, numbers[0] + _AT_MOST[name]


def numbering(expr: Expr) -> WindowOrder | None:
    """The order in which ``expr`` numbers the rows of each partition; None if it does not."""
    return order_of(expr) if isinstance(expr, Node) and expr.name in NUMBERS else None


def _numbered(plan: Plan, index: int, wanted: int) -> Plan | None:
    """``plan`` with the call limited whose ranks are the column ``index``, or by whose order rows
    are numbered there; None if it is neither."""
    if not isinstance(plan, Rel) or plan.kind != "project":
        return _column(plan, index, wanted)
    own = plan.exprs[index]
    if not any(map(has_window, plan.exprs)):
        if isinstance(own, Field):
            below = _numbered(plan.inputs[0], own.index, wanted)
            return None if below is None else plan.with_inputs(below)
        return _column(plan, index, wanted)
    order = _order(own) or (own if isinstance(own, Field) else None, False)
    column, descending = order
    if column is None or not all(_reads_alike(e, column, order) for e in plan.exprs):
        return None
    below = _column(plan.inputs[0], column.index, -wanted if descending else wanted)
    return None if below is None else plan.with_inputs(below)


def _order(expr: Expr) -> tuple[Field | None, bool] | None:
    """(the column by which ``expr`` numbers all rows, whether it descends); None for another
    expression."""
    if not isinstance(expr, Node) or expr.name not in NUMBERS:
        return None
    order = order_of(expr)
    key = order.keys[0] if order.keys else None
    if order.partitions or not isinstance(key, Field):
        return None
    return key, order.directions[0] in DESCENDING


def _reads_alike(expr: Expr, column: Field, order: tuple[Field | None, bool]) -> bool:
    """Whether ``expr`` has the same value for the first rows, whatever the ranks of others."""
    return not has_window(expr) or _order(expr) == (column, order[1])


def _below(plan: Plan, wanted: int) -> Plan | None:
    """``plan`` with its sort limited; None if there is nothing to limit."""
    if isinstance(plan, Rel) and plan.kind == "sort":
        return _sorted(plan, wanted)
    if not keeps_rows(plan):
        return None
    assert isinstance(plan, Rel | Block)
    below = _below(plan.inputs[0], wanted)
    return None if below is None else plan.with_inputs(below)


def _sorted(sort: Rel, wanted: int) -> Plan | None:
    direction = RelMessage.FromString(sort.template).sort.sorts[0].direction
    ranks = -wanted if direction in DESCENDING else wanted
    key = sort.exprs[0]
    if isinstance(key, Field):
        source = _column(sort.inputs[0], key.index, ranks)
        return None if source is None else sort.with_inputs(source)
    found = _limited(key, ranks)
    return None if found is None else replace(sort, exprs=(found, *sort.exprs[1:]))


def _column(plan: Plan, index: int, ranks: int) -> Plan | None:
    """``plan`` with the call of one of its columns limited; None if the column is none."""
    if not isinstance(plan, Block) and not keeps_rows(plan):
        return None
    assert isinstance(plan, Rel | Block)
    exprs = plan.select if isinstance(plan, Block) else plan.exprs
    own = exprs[index]
    if isinstance(own, Field):
        if not keeps_rows(plan):
            return None
        below = _column(plan.inputs[0], own.index, ranks)
        return None if below is None else plan.with_inputs(below)
    new = _limited(own, ranks)
    if new is None or not (keeps_rows(plan) or in_domain(plan, new)):
        return None
    changed = tuple(_in_place(e, own, new) for e in exprs)
    return (
        replace(plan, select=changed) if isinstance(plan, Block) else replace(plan, exprs=changed)
    )


def _in_place(expr: Expr, own: Expr, new: Expr) -> Expr:
    return substitute(expr, lambda part: new if part == own else None)


def _limited(expr: Expr, ranks: int) -> Ask | None:
    if not isinstance(expr, Ask):
        return None
    call = with_ranks(expr.call, ranks)
    return None if call is None else replace(expr, call=call)


def keeps_rows(plan: Plan) -> bool:
    if isinstance(plan, Block):
        return not plan.where and not plan.limited
    return isinstance(plan, Rel) and plan.kind == "project" and not any(map(has_window, plan.exprs))


def in_domain(plan: Plan, ask: Ask) -> bool:
    """Whether the values of ``ask`` are those of the rows that its block leaves."""
    if not isinstance(plan, Block) or plan.limited or ask.domain is None:
        return False
    left = replace(plan, select=())
    return any(
        isinstance(part, Block) and replace(part, select=()) == left
        for part in subplans(ask.domain)
    )
