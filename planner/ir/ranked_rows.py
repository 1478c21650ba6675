"""The rows that a call ranks."""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.nodes import Ask, Block, Plan, Rel, has_window
from blendfusion.planner.ir.traversal import subplans


def keeps_rows(plan: Plan) -> bool:
    """Whether a relation has all rows of its input, each by itself."""
    if isinstance(plan, Block):
        return not plan.where and not plan.has_limit
    return isinstance(plan, Rel) and plan.kind == "project" and not any(map(has_window, plan.exprs))


def in_domain(plan: Plan, ask: Ask) -> bool:
    """Whether the values of ``ask`` are those of the rows that its block leaves."""
    if not isinstance(plan, Block) or plan.has_limit or ask.domain is None:
        return False
    left = replace(plan, select=())
    return any(
        isinstance(part, Block) and replace(part, select=()) == left
        for part in subplans(ask.domain)
    )
