"""Leaves out the order of an aggregate to which the order of its rows means nothing.

before: ``sum(n ORDER BY llm(x))``
after:  ``sum(n)``
safe:   these aggregates have the same value in every order, as SQL defines them; sums of floating
        point numbers may differ in the last digits, as they do between partitions.
"""

from __future__ import annotations

from dataclasses import replace

from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.aggregates import aggregate, aggregation
from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import Measure, Plan, Rel, needs_model

_UNORDERED = frozenset(
    """
    approx_distinct avg bit_and bit_or bit_xor bool_and bool_or count max mean median min stddev
    stddev_pop stddev_samp sum var var_pop var_samp
    """.split()
)


def unordered_aggregates(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate" or not plan.calls_here:
        return plan
    agg = aggregation(plan)
    measures = tuple(map(_without_order, agg.measures))
    if measures == agg.measures:
        return plan
    return aggregate(plan.inputs[0], replace(agg, measures=measures))


def _without_order(measure: Measure) -> Measure:
    order = measure.exprs[: measure.n_sorts]
    if measure.name not in _UNORDERED or not any(map(needs_model, order)):
        return measure
    holder = RelMessage.FromString(measure.template)
    del holder.aggregate.measures[0].measure.sorts[:]
    exprs = measure.exprs[measure.n_sorts :]
    return replace(measure, template=serialize(holder), exprs=exprs, n_sorts=0)
