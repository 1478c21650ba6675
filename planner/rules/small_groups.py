"""Asks nothing about groups that have too few rows for a HAVING on their count.

before: ``filter count(*) > 5`` over ``aggregate count(*) by k`` over ``block(t) where llm(x)``
after:  the same over ``block(t semi join (k of t where count(*) > 5) on k) where llm(x)``
safe:   ``count(x)`` counts no more than all rows, and a group that is too small among all rows that
        there may be, whatever the answers are (planner/stages/supersets.py), is too small. The rows
        of ``t`` are the same each time they are read.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.aggregates import (
    Aggregation,
    Measure,
    aggregated,
    aggregation,
    of_all_values,
)
from blendfusion.planner.ir.builders import filtered, function, integer_literal, literal, projected
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    fields,
    is_volatile,
    literal_like,
    needs_model,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.rules.semi_join_reduction import reduced
from blendfusion.planner.stages.join_partners import small, steady
from blendfusion.planner.stages.supersets import superset

_AT_LEAST = {"gt": "gt", "gte": "gte", "equal": "gte"}
"""Comparisons of a count with a number that hold for large counts only, and the minimum count that
they imply."""
_TURNED = {"lt": "gt", "lte": "gte", "equal": "equal"}


def small_groups(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "filter":
        return plan
    groups = plan.inputs[0]
    if not isinstance(groups, Rel) or groups.kind != "aggregate" or not asks_anything(groups):
        return plan
    agg, rows = aggregation(groups), groups.inputs[0]
    bounds = [b for term in conjuncts(plan.exprs[0]) if (b := _bound(term, agg)) is not None]
    if not bounds or not agg.has_one_grouping or not all(map(_is_plain, agg.keys)):
        return plan
    found = superset(rows)
    read = frozenset().union(*map(fields, agg.keys))
    if found is None or not found.counted or not read <= found.readable:
        return plan
    possible = small(steady(found.plan))
    if possible is None:
        return plan
    large = _large_groups(possible, agg, agg.keys, bounds[0])
    same = [
        function("is_not_distinct_from", (key, Field(rows.width + i)))
        for i, key in enumerate(agg.keys)
    ]
    new = reduced(rows, same, large)
    if new is rows:
        new = reduced(rows, same, large, deep=True)
    return plan if new is rows else plan.with_inputs(groups.with_inputs(new))


def _is_plain(key: Expr) -> bool:
    return not needs_model(key) and not is_volatile(key) and not literal_like(key)


def _bound(term: Expr, agg: Aggregation) -> tuple[str, Measure, Expr] | None:
    """(comparison, count, number) if ``term`` holds for large counts only."""
    if not isinstance(term, Node) or len(term.children) != 2:
        return None
    left, right = term.children
    name: str | None = term.name
    if not isinstance(left, Field):
        left, right, name = right, left, _TURNED.get(term.name)
    measures = {len(agg.keys) + i: measure for i, measure in enumerate(agg.measures)}
    measure = measures.get(left.index) if isinstance(left, Field) else None
    number = literal(right)
    if measure is None or name not in _AT_LEAST or type(number) is not int:
        return None
    if measure.name != "count" or measure.n_args != 1 or len(measure.exprs) != 1:
        return None
    return _AT_LEAST[name], measure, right


def _large_groups(
    rows: Plan, agg: Aggregation, keys: tuple[Expr, ...], bound: tuple[str, Measure, Expr]
) -> Plan:
    """The keys of those groups of ``rows`` whose count meets the bound."""
    comparison, count, number = bound
    every_row = replace(of_all_values(count), exprs=(integer_literal(1),))
    counted = aggregated(rows, Aggregation(agg.template, keys, (every_row,)))
    large = filtered(counted, (function(comparison, (Field(len(keys)), number)),))
    return projected(large, all_fields(len(keys)))
