"""Limits with an offset, which DataFusion 55 misplans.

It puts a sort, a window's or an aggregate's too, below such a limit, as a TopK of as many rows as the limit leaves; of these
the offset is skipped, and rows are lost. (Mended in its pull request 24958, which came later.)
"""

from __future__ import annotations

from blendfusion.planner.ir.builders import fetch_bounds
from blendfusion.planner.ir.nodes import Plan, Rel


def may_lose_rows(plan: Plan) -> bool:
    """Whether ``plan`` is a limit that must not have anything above it in one plan of DataFusion's."""
    if not isinstance(plan, Rel) or plan.kind != "fetch":
        return False
    offset, count = fetch_bounds(plan)
    return offset > 0 and count is not None
