"""Makes a left join of which only rows without a partner stay an anti join.

before: ``project l.*`` over ``filter r.k IS NULL`` over ``l left join (block(r) where llm(r.x)) on
        l.k = r.k``
after:  ``project l.*`` over ``l anti join (block(r) where llm(r.x)) on l.k = r.k``
safe:   a row with a partner has a key of it that is not NULL, since the condition is not true
        otherwise; nothing above reads another column of the right side. An anti join needs one
        partner a row, not all of them.
"""

from __future__ import annotations

from blendfusion.planner.ir.builders import filter_rows
from blendfusion.planner.ir.joins import join_plans, join_type
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    below_projections,
    conjuncts,
    fields,
    inline,
)
from blendfusion.planner.ir.null_values import rejects
from blendfusion.planner.ir.traversal import transform


def anti_joins(plan: Plan) -> Plan:
    """The whole plan."""
    return transform(plan, _of_left, ("project", "aggregate"))


def _of_left(plan: Plan) -> Plan:
    assert isinstance(plan, Rel)
    where = plan.inputs[0]
    if not isinstance(where, Rel) or where.kind != "filter" or not where.has_calls:
        return plan
    columns, join = below_projections(where.inputs[0])
    if not isinstance(join, Rel) or join.kind != "join" or join_type(join) != "left":
        return plan
    left, right = join.inputs
    on = [t for e in join.exprs for t in conjuncts(e)]
    terms = [inline(t, columns) for t in conjuncts(where.exprs[0])]
    rest = tuple(t for t in terms if not _has_no_partner(t, left.width, on))
    exprs = tuple(inline(e, columns) for e in plan.exprs)
    read = set().union(*map(fields, (*rest, *exprs)))
    if len(rest) == len(terms) or any(i >= left.width for i in read):
        return plan
    anti = join_plans(left, right, tuple(on), "left_anti")
    return Rel(plan.kind, plan.template, (filter_rows(anti, rest),), exprs, plan.width)


def _has_no_partner(term: Expr, n_left: int, on: list[Expr]) -> bool:
    """Whether a condition is that a column of the right side is NULL which is none in a partner."""
    if not isinstance(term, Node) or term.name != "is_null":
        return False
    (column,) = term.children
    if not isinstance(column, Field) or column.index < n_left:
        return False
    return any(rejects(t, [column.index]) for t in on)
