"""An aggregate call becomes a list of its rows, and a call on that list.

before: ``aggregate llm_qa(x) group by g``
after:  a block that asks about ``array_agg(x)``, over ``aggregate array_agg(x) group by g``
safe:   array_agg takes over the order, the filter and DISTINCT of the call; a group's list
        holds exactly the rows that the call would have seen. All groups are asked in one batch.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.plan import (
    Ask,
    Block,
    Expr,
    Field,
    Measure,
    Plan,
    Rel,
    aggregated,
    aggregation,
)


def aggregate_calls(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    agg = aggregation(plan)
    if not any(m.call is not None for m in agg.measures):
        return plan
    n_before = agg.n_before_measures
    lists: list[Measure] = []
    outputs: list[Expr] = [Field(i) for i in range(n_before)]
    for measure in agg.measures:
        start = n_before + len(lists)
        if measure.call is None:
            lists.append(measure)
            outputs.append(Field(start))
            continue
        own = tuple(dict.fromkeys(measure.over("array_agg", arg) for arg in measure.args))
        places = [Field(start + own.index(measure.over("array_agg", arg))) for arg in measure.args]
        lists.extend(own)
        outputs.append(Ask(measure.call, tuple(places)))
    below = aggregated(plan.inputs[0], replace(agg, measures=tuple(lists)))
    return Block(below, (), tuple(outputs))
