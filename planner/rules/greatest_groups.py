"""Numbers groups of which only those with the greatest value of all are read.

before: ``filter n = (SELECT max(n) FROM g)`` over groups ``g`` about which a model is asked; also
        ``>=``, and ``min`` with ``<=``
before: ``filter n = m`` over ``max(n) OVER (PARTITION BY k) AS m`` over ``g``
before: ``g anti join g AS h on h.n > g.n`` for counts ``n``, which also ``n >= ALL (SELECT n FROM
        g)`` becomes
after:  ``filter rank = 1 AND n IS NOT NULL`` over ``rank() OVER (PARTITION BY k ORDER BY n DESC) AS
        rank`` over ``g``
before: ``aggregate max(n) by k`` over ``g``
after:  the same over ``filter number = 1`` over ``row_number() OVER (PARTITION BY k ORDER BY n
        DESC) AS number`` over ``g``
safe:   ``g`` has the same rows each time it is read, so its greatest value is that of the first
        ones. Not for floating-point numbers, of which DataFusion finds others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import filter_rows, function, integer_literal, project
from blendfusion.planner.ir.joins import join_type, terms_of
from blendfusion.planner.ir.lineage import answer_columns, may_be_real
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    StoredRows,
    all_fields,
    below_projections,
    conjuncts,
    fields,
    has_window,
    inline,
    is_volatile,
    over,
    shift,
    side_of,
    with_input,
)
from blendfusion.planner.ir.sorts import ASC, DESC
from blendfusion.planner.ir.traversal import Change, asks_anything, from_top, with_subplans
from blendfusion.planner.ir.windows import order_of, window
from blendfusion.planner.needs.compared_values import has_one_row
from blendfusion.planner.stages.join_partners import exact

_DIRECTIONS = {"max": DESC, "min": ASC}
_FIRST = {"equal": ("max", "min"), "gte": ("max",), "lte": ("min",)}
"""Comparisons of a value that hold for none but the greatest or the least one."""
_NOT_FIRST = {"lt": "max", "gt": "min"}
"""Comparisons of a value with another one of which that one is greater, or less."""
_MIRRORED = {"gte": "lte", "lte": "gte", "gt": "lt", "lt": "gt"}
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
    terms = conjuncts(plan.exprs[0])
    for place, term in enumerate(terms):
        rest = (*terms[:place], *terms[place + 1 :])
        for value, other, name in _compared(term):
            kept = _of_subquery(plan.inputs[0], value, other, name)
            kept = kept or _of_window(plan.inputs[0], value, other, name, rest)
            if kept is not None:
                return filter_rows(kept, rest)
    return None


def _of_subquery(groups: Plan, value: Expr, other: Expr, comparison: str) -> Plan | None:
    """The groups whose value compares well with that of a subquery over the same groups."""
    found = _aggregate_of_all(other)
    columns, below = below_projections(groups)
    if found is None or found[0] not in _FIRST.get(comparison, ()) or exact(groups) is None:
        return None
    inner, read = below_projections(found[2])
    if read != below or inline(found[1], inner) != inline(value, columns):
        return None
    return _first(groups, value, found[0]) if _are_numbered(groups, value) else None


def _aggregate_of_all(subquery: Expr) -> tuple[str, Expr, Plan] | None:
    """(the name of the aggregate of all rows that a subquery is, what it reads of them, these)"""
    if not isinstance(subquery, Node) or not subquery.rels or not has_one_row(subquery):
        return None
    shown, rows = below_projections(subquery.rels[0])
    assert isinstance(rows, Rel)
    extreme = _extreme(rows)
    return None if extreme is None or shown != (Field(0),) else (*extreme, rows.inputs[0])


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
    if name not in _FIRST.get(comparison, ()) or not _is_of_all(greatest):
        return None
    if any(column.index in fields(inline(term, columns)) for term in rest):
        return None
    partitions = order_of(greatest).partitions
    own = greatest.children[-1]
    groups = windowed.inputs[0]
    if inline(inline(value, columns), windowed.exprs) != own:
        return None
    if not _are_numbered(groups, own, partitions):
        return None
    kept = project(_first(groups, own, name, partitions), _with(windowed.exprs, column.index, own))
    return project(kept, columns)


def _with(exprs: tuple[Expr, ...], place: int, new: Expr) -> tuple[Expr, ...]:
    return (*exprs[:place], new, *exprs[place + 1 :])


def _is_of_all(window: Node) -> bool:
    """Whether a window reads one argument of all rows of a partition."""
    function = ExpressionMessage.FromString(window.template).window_function
    bounds = (function.lower_bound.WhichOneof("kind"), function.upper_bound.WhichOneof("kind"))
    whole = bounds == ("unbounded", "unbounded") and not function.sorts
    return whole and len(window.children) == len(function.partitions) + 1


def _of_join(plan: Rel) -> Plan | None:
    if join_type(plan) != "left_anti":
        return None
    left, right = plan.inputs
    (term, *others) = terms_of(plan)
    columns, below = below_projections(right)
    for value, other, name in _compared(_as_met(term)):
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
    if below != groups or own != same or exact(plan) is None or not _are_numbered(plan, value):
        return None
    return _first(plan, value, name) if _is_count(own, below) else None


def _is_count(value: Expr, groups: Plan) -> bool:
    """Whether a value is a count, which is never NULL."""
    agg = aggregation(_aggregate_below(groups))
    place = value.index - agg.n_before_measures if isinstance(value, Field) else -1
    return place >= 0 and agg.measures[place].name == "count"


def _of_aggregate(plan: Rel) -> Plan | None:
    agg, extreme = aggregation(plan), _extreme(plan)
    if extreme is None or not agg.one_group_a_row:
        return None
    name, value = extreme
    if not _are_numbered(plan.inputs[0], value, agg.keys):
        return None
    return plan.with_inputs(_first(plan.inputs[0], value, name, agg.keys, "row_number"))


def _extreme(plan: Rel) -> tuple[str, Expr] | None:
    """(the name of the only measure of an aggregate, its argument) for one of ``_DIRECTIONS``"""
    found = {(m.name, m.exprs) for m in aggregation(plan).measures}
    if len(found) != 1:
        return None
    ((name, exprs),) = found
    return (name, exprs[0]) if name in _DIRECTIONS and len(exprs) == 1 else None


def _compared(term: Expr) -> Iterator[tuple[Expr, Expr, str]]:
    """(one side of a comparison, the other one, its name in this order)"""
    if isinstance(term, Node) and len(term.children) == 2:
        one, other = term.children
        yield one, other, term.name
        yield other, one, _MIRRORED.get(term.name, term.name)


def _are_numbered(plan: Plan, value: Expr, partitions: tuple[Expr, ...] = ()) -> bool:
    """Whether ``plan`` has groups that can be numbered by ``value`` in parts of equal keys before
    all answers are known."""
    columns, below = below_projections(plan)
    groups = _aggregate_below(below)
    if groups is None or not aggregation(groups).one_group_a_row:
        return False
    own = inline(value, columns)
    n = len(aggregation(groups).keys)
    if is_volatile(own) or own.rels or may_be_real(own, below):
        return False
    plain = {Field(i) for i in {*range(n)} - answer_columns(groups)}
    return len(plain) == n and {inline(e, columns) for e in partitions} <= plain


def _aggregate_below(plan: Plan) -> Rel | None:
    """The aggregate below filters of groups."""
    while isinstance(plan, Rel) and plan.kind == "filter":
        plan = plan.inputs[0]
    return plan if isinstance(plan, Rel) and plan.kind == "aggregate" else None


def _first(
    groups: Plan,
    value: Expr,
    extreme: str,
    partitions: tuple[Expr, ...] = (),
    number: str = "rank",
) -> Plan:
    """The groups with the first number in each partition; those with a rank have a value."""
    rank = window(number, partitions, (value,), (_DIRECTIONS[extreme],))
    ranked = project(groups, (*all_fields(groups.width), rank))
    is_first = function("equal", (Field(groups.width), integer_literal(1)))
    has_value = (function("is_not_null", (value,)),) if number == "rank" else ()
    return project(filter_rows(ranked, (is_first, *has_value)), all_fields(groups.width))


_READERS: dict[str, Callable[[Rel], Plan | None]] = {
    "filter": _of_filter,
    "join": _of_join,
    "aggregate": _of_aggregate,
}
