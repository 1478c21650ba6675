"""Products: rows of several relations that no equality links, each with each."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import (
    boolean_literal,
    fetch_bounds,
    limit_rows,
    project,
    table_names,
)
from blendfusion.planner.ir.joins import TESTED, join_plans, join_type
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    StoredRows,
    conjuncts,
    fields,
    has_window,
    is_key,
    once_a_plan,
)


@once_a_plan
def factors(plan: Plan) -> int:
    """The number of relations whose rows ``plan`` multiplies. Those of few rows, as a limit or
    literals have, do not count."""
    if isinstance(plan, StoredRows):
        return 1
    if isinstance(plan, Block):
        few = plan.count is not None
        return 0 if few else factors(plan.source)
    if _has_few_rows(plan):
        return 0
    below = [factors(p) for p in plan.inputs]
    if plan.kind not in ("join", "cross"):
        return max(below, default=1)
    if join_type(plan) in TESTED:
        return below[1 - TESTED[join_type(plan)]]
    return max(below) if has_key(plan.exprs, plan.inputs[0].width) else sum(below)


def _has_few_rows(plan: Rel) -> bool:
    if plan.kind == "fetch":
        return fetch_bounds(plan)[1] is not None
    if plan.kind == "aggregate":
        return not aggregation(plan).keys
    return plan.kind == "read" and not table_names(plan)


def thin(plan: Plan, read: Collection[int]) -> Plan:
    """A smaller plan for a reader of the columns ``read``: each row of ``plan`` occurs in it at
    least once, the number of copies may differ, and the other columns have no meaning. Of a product
    only the sides with those columns stay; the others must have a row."""
    if not isinstance(plan, Rel) or factors(plan) < 2:
        return plan
    if plan.kind == "project" and not any(map(has_window, plan.exprs)):
        used = set().union(*(fields(plan.exprs[i]) for i in read))
        return plan.with_inputs(thin(plan.inputs[0], used))
    if plan.kind in ("filter", "sort"):
        used = {*read}.union(*map(fields, plan.exprs))
        return plan.with_inputs(thin(plan.inputs[0], used))
    if plan.kind not in ("join", "cross") or join_type(plan) != "inner":
        return plan
    left, right = plan.inputs
    if not has_key(plan.exprs, left.width):
        for side, start in ((left, 0), (right, left.width)):
            own = {i - start for i in read}
            if own <= {*range(side.width)}:
                return _one_side(plan, side, start, thin(side, own))
    used = {*read}.union(*map(fields, plan.exprs))
    lefts = thin(left, {i for i in used if i < left.width})
    rights = thin(right, {i - left.width for i in used if i >= left.width})
    return plan.with_inputs(lefts, rights)


def _one_side(product: Rel, side: Plan, start: int, rows: Plan) -> Plan:
    """``rows`` of a side, at the columns of the product, if the other side has any."""
    (other,) = (p for p in product.inputs if p is not side)
    row = limit_rows(project(other, (boolean_literal(True),)), 0, 1)
    blank = boolean_literal(True)
    place = range(start, start + side.width)
    columns = tuple(Field(i - start) if i in place else blank for i in range(product.width))
    return project(join_plans(rows, row, (), "left_semi"), columns)


def has_key(terms: Iterable[Expr], n_left: int) -> bool:
    """Whether a hash join can use one of the terms."""
    return any(is_key(t, n_left) for e in terms for t in conjuncts(e))
