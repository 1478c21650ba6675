"""Moves the calls of a relation into a block.

before: ``filter p AND llm(x)`` / ``project a, llm(x)`` / ``sort by llm(x)`` / ``join on llm(l.x) =
        r.y``
after:  a block that does the filter or projection; or, where a relation needs whole columns
        (sort, aggregate, join keys, windows), the relation over a block that appends them
safe:   filters and projections work row by row and keep order; the others see the same columns.
        Equal calls in one block are one column: used in several places, evaluated once.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.errors import PlanError
from blendfusion.planner.ir.aggregates import aggregate, aggregation
from blendfusion.planner.ir.builders import case, function, project
from blendfusion.planner.ir.joins import join_plans, join_type
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Measure,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    has_window,
    is_key,
    literal_like,
    needs_model,
    substitute,
    windows,
)
from blendfusion.planner.ir.side_columns import with_side_columns


def call_extraction(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or not any(map(needs_model, plan.exprs)):
        return plan
    if plan.kind == "filter":
        source = plan.inputs[0]
        return Block(source, tuple(conjuncts(plan.exprs[0])), all_fields(source.width))
    if plan.kind == "project":
        return _project(plan)
    if plan.kind == "aggregate":
        return _aggregate(plan)
    if plan.kind in ("join", "cross"):
        return _join(plan)
    if plan.kind == "sort":
        return _sort(plan)
    raise PlanError(f"a call inside a relation of kind '{plan.kind}'")


def _project(plan: Rel) -> Plan:
    source = plan.inputs[0]
    if not any(map(has_window, plan.exprs)):
        return Block(source, (), plan.exprs)
    inside = tuple(dict.fromkeys(w for e in plan.exprs for w in windows(e)))
    if any(map(needs_model, inside)):
        columns, changed = _append_calls(source, inside)
        below: Plan = Block(source, (), columns)
        renamed = dict(zip(inside, changed, strict=True))
        exprs = tuple(substitute(e, renamed.get) for e in plan.exprs)
        return project(below, exprs)
    # DataFusion computes the windows first; the calls beside them run row by row, above.
    below = project(source, (*all_fields(source.width), *inside))
    columns_of = {w: Field(source.width + i) for i, w in enumerate(inside)}
    return Block(below, (), tuple(substitute(e, columns_of.get) for e in plan.exprs))


def _append_calls(
    source: Plan, exprs: tuple[Expr, ...]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """(all columns of the source and every call in ``exprs``, ``exprs`` over those columns)."""
    calls: dict[Expr, Field] = {}

    def column(expr: Expr) -> Expr | None:
        if not needs_model(expr) or has_window(expr):
            return None
        return calls.setdefault(expr, Field(source.width + len(calls)))

    changed = tuple(substitute(e, column) for e in exprs)
    return (*all_fields(source.width), *calls), changed


def _aggregate(plan: Rel) -> Plan:
    """Keys and arguments become the block's only columns."""
    agg = aggregation(plan)
    columns: dict[Expr, Field] = {}

    def column(expr: Expr) -> Expr:
        if literal_like(expr):
            return expr
        return columns.setdefault(expr, Field(len(columns)))

    measures = (replace(m, exprs=_filter_arguments(m)) for m in agg.measures)
    changed = replace(agg, measures=tuple(measures)).change(column)
    return aggregate(Block(plan.inputs[0], (), tuple(columns)), changed)


def _filter_arguments(measure: Measure) -> tuple[Expr, ...]:
    """The expressions of a measure, with calls asked only for rows that pass its FILTER."""
    if measure.filter is None:
        return measure.exprs
    *inside, where = measure.exprs
    if needs_model(where):
        where = function("is_true", (where,))  # FALSE and NULL are the same to it
    return (*(case([(where, e)], None) if needs_model(e) else e for e in inside), where)


def _sort(plan: Rel) -> Plan:
    source = plan.inputs[0]
    columns, keys = _append_calls(source, plan.exprs)
    below = Block(source, (), columns)
    ordered = replace(plan, inputs=(below,), exprs=keys, width=below.width)
    return project(ordered, all_fields(source.width))


def _join(plan: Rel) -> Plan:
    left, right = plan.inputs
    inner = join_type(plan) == "inner"
    terms = [t for e in plan.exprs for t in conjuncts(e)]
    above = tuple(t for t in terms if needs_model(t) and inner and not is_key(t, left.width))
    if above:
        below = join_plans(left, right, tuple(t for t in terms if t not in above))
        return Block(below, above, all_fields(below.width))
    return with_side_columns(plan, tuple(terms))
