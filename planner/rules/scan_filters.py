"""Calls are taken out of table scans.

before: ``read t [filter: id < 5 AND llm(x)]`` below ``filter llm(x) AND id < 5``
after:  ``read t [filter: id < 5]`` below the same filter
safe:   DataFusion copies a predicate into a scan as a hint ("partial filter") and keeps the filter
        above; an exact one is refused when the plan is read (see ``driver``).
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.build import boolean_literal, conjunction
from blendfusion.planner.plan import Expr, Plan, Rel, conjuncts, needs_model


def scan_filters(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "read" or not any(map(needs_model, plan.exprs)):
        return plan
    return replace(plan, exprs=tuple(_without_calls(e) for e in plan.exprs))


def _without_calls(predicate: Expr) -> Expr:
    kept = tuple(term for term in conjuncts(predicate) if not needs_model(term))
    return conjunction(kept) if kept else boolean_literal(True)
