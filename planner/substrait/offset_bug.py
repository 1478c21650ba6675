"""Isolates limits with an offset, which DataFusion 55 misplans.

DataFusion pushes a sort, also that of a window or an aggregate, below such a limit, as a TopK of
the limit's count. The offset then skips rows of these, and rows are lost. (Fixed later, in its pull
request 24958.)
"""

from __future__ import annotations

from blendfusion.planner.ir.builders import fetch_bounds
from blendfusion.planner.ir.nodes import Plan, Rel


def may_lose_rows(plan: Plan) -> bool:
    """Whether ``plan`` is a limit that must be the top of a DataFusion plan."""
    if not isinstance(plan, Rel) or plan.kind != "fetch":
        return False
    offset, count = fetch_bounds(plan)
    return offset > 0 and count is not None
