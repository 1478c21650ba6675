"""Keeps rows from which no aggregate has a value out of a block below aggregates without groups.

before: ``aggregate count(n)`` over ``block(t) where llm(x)``; also of ``count(*)`` with a FILTER
after:  the same over the block over ``t`` where ``n`` is not NULL; or the condition of the FILTER
        is true
safe:   such aggregates leave out NULLs, and rows that do not meet their FILTER. Without groups, a
        row has no other effect.

before: ``aggregate max(n) FILTER (WHERE llm(x))`` over ``block(t)``; also of several aggregates
        with one condition
after:  ``aggregate max(n)`` over ``block(t) where llm(x)``, which other rules know
safe:   without groups, there is one row in either case.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.aggregates import aggregate, aggregation, without_filter
from blendfusion.planner.ir.conditions_below import with_conditions
from blendfusion.planner.ir.necessary import ALWAYS, all_of, any_of, necessary, not_null
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Measure,
    Plan,
    Rel,
    conjuncts,
    inline,
    may_move,
    needs_model,
)

_OF_VALUES = ("count", "sum", "avg", "min", "max", "bool_and", "bool_or")
"""Aggregates that leave out NULLs."""


def rows_that_count(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    block, agg = plan.inputs[0], aggregation(plan)
    if not isinstance(block, Block) or not may_move(block):
        return plan
    if agg.n_before_measures or not agg.measures:
        return plan
    filters = {measure.filter for measure in agg.measures}
    own = filters.pop() if len(filters) == 1 else None
    if own is not None and needs_model(condition := inline(own, block.select)):
        chosen = replace(block, where=(*block.where, *conjuncts(condition)))
        return aggregate(chosen, replace(agg, measures=tuple(map(without_filter, agg.measures))))
    if not any(map(needs_model, block.where)):
        return plan
    condition = any_of([_counting_condition(measure, block) for measure in agg.measures])
    source = with_conditions(block.source, [c for c in conjuncts(condition) if c != ALWAYS])
    return plan.with_inputs(block.with_inputs(source))


def _counting_condition(measure: Measure, block: Block) -> Expr:
    """A condition without calls that is true on every row from which an aggregate has a value."""
    terms = []
    if measure.name in _OF_VALUES and measure.n_args == 1:
        terms.append(not_null(inline(measure.args[0], block.select)))
    if measure.filter is not None:
        terms.append(necessary(inline(measure.filter, block.select)))
    return all_of(terms)
