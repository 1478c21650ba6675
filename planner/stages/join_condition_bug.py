"""Rewrites join conditions that DataFusion would misread: equalities of two columns of one side.

DataFusion's Substrait reader takes every ``column = column`` among the conjuncts of a join's
condition for a pair of keys, one of each side. It then looks for the second column on the wrong
side.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import conjunction, function
from blendfusion.planner.ir.nodes import KEY_COMPARISONS, Expr, Field, Node, Plan, Rel, conjuncts


def readable(plan: Plan) -> Plan:
    """A join with each ``x.a = x.b`` written ``(x.a = x.b) IS TRUE``, which joins the same rows,
    since NULL and false both join none. Any other relation is returned unchanged."""
    if not isinstance(plan, Rel) or plan.kind != "join":
        return plan
    width = plan.inputs[0].width
    terms = conjuncts(plan.exprs[0])
    if not any(_is_of_one_side(term, width) for term in terms):
        return plan
    written = tuple(
        function("is_true", (term,)) if _is_of_one_side(term, width) else term for term in terms
    )
    return replace(plan, exprs=(conjunction(written),))


def _is_of_one_side(term: Expr, left_width: int) -> bool:
    if not isinstance(term, Node) or term.name not in KEY_COMPARISONS:
        return False
    a, b = term.children
    return (
        isinstance(a, Field)
        and isinstance(b, Field)
        and (a.index < left_width) == (b.index < left_width)
    )
