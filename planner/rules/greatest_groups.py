"""Computes values of all groups from the groups, and numbers those of which the greatest are read.

before: ``filter n > (SELECT avg(n) FROM g)`` over groups ``g`` about which a model is asked; also
        ``count(*) > 0.1 * (SELECT count(*) FROM t)`` over groups of ``t``
after:  ``filter n > m`` over ``avg(n) OVER () AS m`` over ``g``
before: ``filter n = m`` over ``max(n) OVER (PARTITION BY k) AS m`` over ``g``; also ``>=``, and
        ``min`` with ``<=``
before: ``g anti join g AS h on h.n > g.n`` for counts ``n``, which also ``n >= ALL (SELECT n FROM
        g)`` becomes
after:  ``filter rank = 1 AND n IS NOT NULL`` over ``rank() OVER (PARTITION BY k ORDER BY n DESC) AS
        rank`` over ``g``
before: ``aggregate max(n) by k`` over ``g``
after:  the same over ``filter number = 1`` over ``row_number() OVER (PARTITION BY k ORDER BY n
        DESC) AS number`` over ``g``
safe:   ``g`` has the same rows each time it is read, so that windows over them have the values of
        the subquery, and the greatest value is that of the first ones. Not for floating-point
        numbers, of which DataFusion finds others.
"""

from __future__ import annotations

from collections.abc import Callable

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import filter_rows, function, project, sides_of
from blendfusion.planner.ir.joins import join_type, terms_of
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    StoredRows,
    below_projections,
    conjuncts,
    fields,
    has_window,
    inline,
    over,
    shift,
    side_of,
    with_input,
)
from blendfusion.planner.ir.traversal import Change, asks_anything, from_top, with_subplans
from blendfusion.planner.ir.windows import order_of, reads_partition
from blendfusion.planner.needs.group_values import with_window_values
from blendfusion.planner.needs.numbered_groups import (
    extreme_of,
    first_groups,
    is_count,
    may_be_numbered,
)
from blendfusion.planner.stages.join_partners import exact

_FIRST = {"equal": ("max", "min"), "gte": ("max",), "lte": ("min",)}
"""Comparisons of a value that hold for none but the greatest or the least one."""
_NOT_FIRST = {"lt": "max", "gt": "min"}
"""Comparisons of a value with another one of which that one is greater, or less."""
_FAILED = {"gte": "lt", "lte": "gt"}
"""The comparisons that hold where others fail."""


def greatest_groups(plan: Plan) -> Plan:
    """The whole plan, before a subquery is a column."""
    return from_top(plan, _change)


def _change(plan: Plan, below: Change) -> Plan:
    if isinstance(plan, StoredRows) or not asks_anything(plan) or "aggregate" not in plan.kinds:
        return plan
    found = _READERS[plan.kind](plan) if isinstance(plan, Rel) and plan.kind in _READERS else None
    return with_subplans(found or plan, below)


def _of_filter(plan: Rel) -> Plan | None:
    if plan.has_subqueries:
        return with_window_values(plan)
    terms = conjuncts(plan.exprs[0])
    for place, term in enumerate(terms):
        rest = (*terms[:place], *terms[place + 1 :])
        for value, other, name in sides_of(term):
            kept = _of_window(plan.inputs[0], value, other, name, rest)
            if kept is not None:
                return filter_rows(kept, rest)
    return None


def _of_window(
    plan: Plan, value: Expr, other: Expr, comparison: str, rest: tuple[Expr, ...]
) -> Plan | None:
    """The groups whose value compares well with that of a window over them."""
    columns, windowed = below_projections(plan)
    column = inline(other, columns)
    if not isinstance(windowed, Rel) or windowed.kind != "project" or not isinstance(column, Field):
        return None
    greatest = windowed.exprs[column.index]
    others = (*windowed.exprs[: column.index], *windowed.exprs[column.index + 1 :])
    if not isinstance(greatest, Node) or any(map(has_window, others)):
        return None
    name = greatest.name.removeprefix("window:")
    if name not in _FIRST.get(comparison, ()) or not reads_partition(greatest):
        return None
    if any(column.index in fields(inline(term, columns)) for term in rest):
        return None
    partitions = order_of(greatest).partitions
    own = greatest.children[-1]
    groups = windowed.inputs[0]
    if inline(inline(value, columns), windowed.exprs) != own:
        return None
    if not may_be_numbered(groups, own, partitions):
        return None
    shown = tuple(own if e == greatest else e for e in windowed.exprs)
    kept = project(first_groups(groups, own, name, partitions), shown)
    return project(kept, columns)


def _of_join(plan: Rel) -> Plan | None:
    if join_type(plan) != "left_anti":
        return None
    left, right = plan.inputs
    (term, *others) = terms_of(plan)
    columns, below = below_projections(right)
    for value, other, name in sides_of(_as_met(term)):
        own = side_of(value, left.width) == "left" and side_of(other, left.width) == "right"
        if others or not own or name not in _NOT_FIRST:
            continue
        same = inline(shift(other, -left.width), columns)
        return _with_first(left, value, _NOT_FIRST[name], same, below)
    return None


def _as_met(term: Expr) -> Expr:
    """``NOT a >= b`` as ``a < b``, where neither is NULL."""
    if not isinstance(term, Node) or term.name not in ("not", "is_false"):
        return term
    (own,) = term.children
    failed = isinstance(own, Node) and own.name in _FAILED
    return function(_FAILED[own.name], own.children) if isinstance(own, Node) and failed else term


def _with_first(plan: Plan, value: Expr, name: str, same: Expr, groups: Plan) -> Plan | None:
    """``plan`` with the first of its groups, if these are ``groups``, and ``value`` is the count
    ``same`` of them; perhaps below joins that mark its rows."""
    columns, below = below_projections(plan)
    own = inline(value, columns)
    if isinstance(below, Rel) and below.kind == "join" and join_type(below) == "left_mark":
        left = below.inputs[0]
        marked = any(i >= left.width for i in fields(own))
        new = None if marked else _with_first(left, own, name, same, groups)
        return None if new is None else over(plan, below, with_input(below, 0, new))
    if below != groups or own != same or exact(plan) is None or not may_be_numbered(plan, value):
        return None
    return first_groups(plan, value, name) if is_count(own, below) else None


def _of_aggregate(plan: Rel) -> Plan | None:
    agg, extreme = aggregation(plan), extreme_of(plan)
    if extreme is None or not agg.one_group_a_row:
        return None
    name, value = extreme
    if not may_be_numbered(plan.inputs[0], value, agg.keys):
        return None
    return plan.with_inputs(first_groups(plan.inputs[0], value, name, agg.keys, "row_number"))


_READERS: dict[str, Callable[[Rel], Plan | None]] = {
    "filter": _of_filter,
    "project": with_window_values,
    "join": _of_join,
    "aggregate": _of_aggregate,
}
