"""Asks nothing about groups that have too few rows for a HAVING on their count.

before: ``filter count(*) > 5`` over ``aggregate count(*) by k`` over ``block(t) where llm(x)``
after:  the same over ``block(t semi join (k of t where count(*) > 5) on k) where llm(x)``
safe:   a block only drops rows, and ``count(x)`` counts no more than all rows: a group that is too
        small before the block is too small behind it. The rows of ``t`` are the same each time they
        are read.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.aggregates import Aggregation, Measure, aggregated, aggregation
from blendfusion.planner.ir.builders import filtered, function, integer_literal, literal, projected
from blendfusion.planner.ir.necessary import ALWAYS, necessary
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    asks_itself,
    conjuncts,
    fields,
    inline,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
)
from blendfusion.planner.stages.join_partners import small, steady, with_partner
from blendfusion.planner.stages.supersets import superset

_AT_LEAST = {"gt": "gt", "gte": "gte", "equal": "gte"}
"""Comparisons of a count with a number that hold for large counts only, and the minimum count that
they imply."""
_TURNED = {"lt": "gt", "lte": "gte", "equal": "equal"}


def small_groups(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "filter":
        return plan
    groups = plan.inputs[0]
    if not isinstance(groups, Rel) or groups.kind != "aggregate":
        return plan
    block = groups.inputs[0]
    if not isinstance(block, Block) or not may_move(block) or not asks_itself(block):
        return plan
    agg = aggregation(groups)
    keys = tuple(inline(key, block.select) for key in agg.keys)
    if not agg.has_one_grouping or not all(map(_is_plain, keys)):
        return plan
    bounds = [b for term in conjuncts(plan.exprs[0]) if (b := _bound(term, agg)) is not None]
    found = superset(block.source)
    read = frozenset().union(*map(fields, keys))
    if not bounds or found is None or not found.counted or not read <= found.readable:
        return plan
    everything = small(steady(found.plan))
    if everything is None:
        return plan
    implied = dict.fromkeys(c for term in block.where for c in conjuncts(necessary(term)))
    known = (c for c in implied if c != ALWAYS and fields(c) <= found.readable)
    possible = filtered(everything, tuple(known))
    large = _large_groups(possible, agg, keys, bounds[0])
    width = block.source.width
    same = [function("is_not_distinct_from", (key, Field(width + i))) for i, key in enumerate(keys)]
    source = with_partner(block.source, same, large, "left_semi")
    return plan.with_inputs(groups.with_inputs(replace(block, source=source)))


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
    every_row = replace(count, exprs=(integer_literal(1),))
    counted = aggregated(rows, Aggregation(agg.template, keys, (every_row,)))
    large = filtered(counted, (function(comparison, (Field(len(keys)), number)),))
    return projected(large, all_fields(len(keys)))
