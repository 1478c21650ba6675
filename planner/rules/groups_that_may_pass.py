"""Asks for the answers that are keys of groups only about rows that may be in a group that passes.

before: ``filter n > 3`` over ``aggregate count(*) AS n by k, llm(x)`` over ``block(t)``
after:  the same over the block over ``t semi join (filter n > 3 over aggregate count(*) AS n by k
        over t) on k IS NOT DISTINCT FROM k``
safe:   a group by more keys is part of a group by fewer, so that it counts no more rows, and has no
        greater maximum and no smaller minimum. Of a group that is too small as a whole no part
        passes, so its rows are not in the result.
"""

from __future__ import annotations

from dataclasses import replace

from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.aggregates import (
    Aggregation,
    aggregate,
    aggregation,
    without_filter,
)
from blendfusion.planner.ir.builders import MIRRORED, filter_rows, function, sides_of
from blendfusion.planner.ir.joins import join_plans
from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Measure,
    Plan,
    Rel,
    conjuncts,
    inline,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.stages.join_partners import exact, small

_UP = {"gt": "gt", "gte": "gte", "equal": "gte"}
"""Comparisons with a number that a greater value passes, too, if a value passes the first ones."""
_DOWN = {"lt": "lt", "lte": "lte", "equal": "lte"}
_TESTS = {"count": _UP, "max": _UP, "min": _DOWN}
"""Aggregates that grow, or shrink, with their rows."""


def groups_that_may_pass(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "filter":
        return plan
    (groups,) = plan.inputs
    if not isinstance(groups, Rel) or groups.kind != "aggregate":
        return plan
    block, agg = groups.inputs[0], aggregation(groups)
    if not isinstance(block, Block) or not may_move(block) or not agg.has_one_grouping:
        return plan
    keys = [inline(key, block.select) for key in agg.keys]
    cheap = tuple(key for key in keys if not needs_model(key) and not is_volatile(key))
    if len(cheap) == len(keys) or asks_anything(block.source) or small(exact(block.source)) is None:
        return plan
    source = _rows_that_may_pass(block, cheap, agg, conjuncts(plan.exprs[0]))
    if source is block.source:
        return plan
    return plan.with_inputs(groups.with_inputs(replace(block, source=source)))


def _rows_that_may_pass(
    block: Block, keys: tuple[Expr, ...], agg: Aggregation, terms: list[Expr]
) -> Plan:
    """The rows of a block's source whose group by ``keys`` meets what ``terms`` ask of its parts;
    the source itself if they ask nothing that it can lack."""
    source, tests = block.source, dict[Expr, Measure]()
    for column, name, number in filter(None, map(_comparison, terms)):
        place = column.index - agg.n_before_measures
        whole = _of_whole(agg.measures[place], block) if place >= 0 else None
        known = {} if whole is None else _TESTS[whole.name]
        if whole is not None and name in known:
            tests[function(known[name], (Field(len(keys) + len(tests)), number))] = whole
    if not tests:
        return source
    message = RelMessage()
    message.aggregate.groupings.add().expression_references.extend(range(len(keys)))
    groups = aggregate(source, Aggregation(serialize(message), keys, tuple(tests.values())))
    same = (
        function("is_not_distinct_from", (key, Field(source.width + i)))
        for i, key in enumerate(keys)
    )
    return join_plans(source, filter_rows(groups, tuple(tests)), tuple(same), "left_semi")


def _comparison(term: Expr) -> tuple[Field, str, Expr] | None:
    """A comparison of a column with a number."""
    for left, right, name in sides_of(term):
        if name in MIRRORED and isinstance(left, Field) and literal_like(right):
            return left, name, right
    return None


def _of_whole(measure: Measure, block: Block) -> Measure | None:
    """An aggregate over the source of ``block``; without its FILTER, if that contains a call."""
    if measure.name not in _TESTS or measure.n_sorts:
        return None
    if measure.filter is not None and needs_model(inline(measure.filter, block.select)):
        measure = without_filter(measure)
    exprs = tuple(inline(e, block.select) for e in measure.exprs)
    return None if any(map(needs_model, exprs)) else replace(measure, exprs=exprs)
