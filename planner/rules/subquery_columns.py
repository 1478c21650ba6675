"""Turns a subquery beside a call into a column below the block.

before: ``block where llm(x) > (SELECT max(y) FROM u)`` over ``source``
after:  ``block where llm(x) > c`` over ``project *, (SELECT max(y) FROM u) AS c`` over ``source``
safe:   the subquery does not depend on the row (a correlated one is refused when the plan is read);
        chunks are evaluated apart from the tables of the query, which a subquery must see.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.errors import PlanError
from blendfusion.planner.ir.builders import is_null_literal, project
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    all_fields,
    needs_model,
    substitute,
)


def subquery_columns(plan: Plan) -> Plan:
    if not isinstance(plan, Block) or not plan.has_subqueries:
        return plan
    source = plan.source
    columns: dict[Expr, Field] = {}

    def column(expr: Expr) -> Expr | None:
        if not isinstance(expr, Node) or not (expr.rels or _may_be_empty(expr)):
            return None
        if needs_model(expr):
            raise PlanError("a call that is compared inside a subquery expression")
        return columns.setdefault(expr, Field(source.width + len(columns)))

    where = tuple(substitute(t, column) for t in plan.where)
    select = tuple(substitute(e, column) for e in plan.select)
    if not columns:
        return plan
    below = project(source, (*all_fields(source.width), *columns))
    return replace(plan, source=below, where=where, select=select)


def _may_be_empty(expr: Node) -> bool:
    """Whether ``expr`` is ``nullif((SELECT …), NULL)``, by which a column may be NULL."""
    if expr.name != "nullif" or not is_null_literal(expr.children[1]):
        return False
    value = expr.children[0]
    return isinstance(value, Node) and bool(value.rels)
