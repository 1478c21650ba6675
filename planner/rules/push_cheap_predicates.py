"""Moves a predicate without a model below the block, into DataFusion's plan, and a predicate that
only needs vectors before those that ask a language model.

before: ``block where llm(x) AND llm_similarity(x, 'y') > 0.5 AND p`` over ``source``
after:  ``block where llm_similarity(x, 'y') > 0.5 AND llm(x)`` over ``filter p`` over ``source``
safe:   a conjunction does not depend on its order, and the block's limit counts rows after it.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import filter_rows
from blendfusion.planner.ir.nodes import Block, Plan, asks, asks_model, is_volatile, needs_model


def push_cheap_predicates(plan: Plan) -> Plan:
    if not isinstance(plan, Block):
        return plan
    cheap = tuple(t for t in plan.where if not needs_model(t) and not is_volatile(t))
    rest = [term for term in plan.where if term not in cheap]
    rest.sort(key=lambda term: any(map(asks_model, asks(term))))
    if tuple(rest) == plan.where:
        return plan
    source = filter_rows(plan.source, cheap) if cheap else plan.source
    return replace(plan, source=source, where=tuple(rest))
