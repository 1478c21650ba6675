"""A predicate that needs no model goes below the block, into DataFusion's plan.

before: ``block where llm(x) AND p`` over ``source``
after:  ``block where llm(x)`` over ``filter p`` over ``source``
safe:   a conjunction does not depend on its order, and the block's limit counts rows after it.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.build import filtered
from blendfusion.planner.plan import Block, Plan, is_volatile, needs_model


def cheap_first(plan: Plan) -> Plan:
    if not isinstance(plan, Block):
        return plan
    cheap = tuple(t for t in plan.where if not needs_model(t) and not is_volatile(t))
    if not cheap:
        return plan
    dear = tuple(t for t in plan.where if t not in cheap)
    return replace(plan, source=filtered(plan.source, cheap), where=dear)
