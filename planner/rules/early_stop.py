"""A limit above a block becomes the block's own.

before: ``limit k`` over ``block where llm(x)``
after:  ``block where llm(x) limit k``, which stops reading its source at the k-th survivor
safe:   a block passes rows on in order; two limits compose to one.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.plan import Block, Plan, Rel, fetch_bounds


def early_stop(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "fetch":
        return plan
    below = plan.inputs[0]
    if not isinstance(below, Block):
        return plan
    offset, count = fetch_bounds(plan)
    counts = [] if count is None else [count]
    if below.count is not None:
        counts.append(max(0, below.count - offset))
    return replace(below, offset=below.offset + offset, count=min(counts, default=None))
