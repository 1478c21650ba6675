"""Turns right joins into left ones, since DataFusion 55 may lose rows of the former.

DataFusion pushes a filter below a hash join whose right side stays, and looks its columns up in
that side by name alone: ``l.x IS NULL OR r.x = 'a'`` becomes ``r.x IS NULL OR r.x = 'a'`` of the
rows of ``r``. Of random queries over tables with equal column names, 3 % of those with a right
join lost rows or had too many, and none of those with a left join. (Fixed later, in its pull
request 25259.)
"""

from __future__ import annotations

from blendfusion.planner.ir.builders import project
from blendfusion.planner.ir.joins import exchange_sides, exchanged_fields, join_plans, join_type
from blendfusion.planner.ir.nodes import Plan, Rel, conjuncts


def as_left_join(plan: Plan) -> Plan:
    """A right join as a left join of the same rows, in the same order of columns. Any other
    relation is returned unchanged."""
    if not isinstance(plan, Rel) or plan.kind != "join" or join_type(plan) != "right":
        return plan
    left, right = plan.inputs
    columns = exchanged_fields(left.width, right.width)
    terms = tuple(exchange_sides(t, left.width, right.width) for t in conjuncts(plan.exprs[0]))
    return project(join_plans(right, left, terms, "left"), columns)
