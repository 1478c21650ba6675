"""Isolates limits with an offset, which DataFusion 55 misplans.

DataFusion pushes a sort, also that of a window or an aggregate, below such a limit, as a TopK of
the limit's count. The offset then skips rows of these, and rows are lost. (Fixed later, in its pull
request 24958.) Below an offset without a count it leaves the order out, and other rows are skipped.
"""

from __future__ import annotations

import re

from blendfusion.planner.ir.builders import (
    fetch_bounds,
    filter_rows,
    float_literal,
    function,
    limit_rows,
)
from blendfusion.planner.ir.nodes import Plan, Rel

_SKIPS = re.compile(r" *Limit: skip=(?!0,|None,)")
ALL = 2**62
"""A count that leaves all rows, with which DataFusion keeps the order below."""
_ORDERS = re.compile(r" *(Sort|DistinctOn|WindowAggr): | *Aggregate: .* ORDER BY ")


def may_lose_rows(plan: Plan) -> bool:
    """Whether ``plan`` is a limit that must be the top of a DataFusion plan."""
    if not isinstance(plan, Rel) or plan.kind != "fetch":
        return False
    return fetch_bounds(plan)[0] > 0


def orders_skipped_rows(text: str) -> bool:
    """Whether a logical plan, given as text, orders the rows that a limit with an offset leaves."""
    above: list[str] = []
    for line in text.splitlines():
        del above[(len(line) - len(line.lstrip())) // 2 :]
        if _SKIPS.match(line) and any(map(_ORDERS.match, above)):
            return True
        above.append(line)
    return False


def with_barrier(plan: Plan) -> Plan:
    """Such a limit below a filter that keeps all rows, and below which DataFusion moves no sort,
    since it takes it for a random one. Any other relation is returned unchanged."""
    if not isinstance(plan, Rel) or not may_lose_rows(plan):
        return plan
    offset, count = fetch_bounds(plan)
    if count is None:
        plan = limit_rows(plan.inputs[0], offset, ALL)
    return filter_rows(plan, (function("lt", (function("random", ()), float_literal(2.0))),))
