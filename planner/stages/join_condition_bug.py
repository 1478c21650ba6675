"""Rewrites join conditions that DataFusion would misread: equalities of two columns of one side,
and ``IS NOT DISTINCT FROM`` beside an equality.

DataFusion's Substrait reader takes every ``column = column`` among the conjuncts of a join's
condition for a pair of keys, one of each side. It then looks for the second column on the wrong
side. A join compares NULLs in all of its keys or in none: ``x.a IS NOT DISTINCT FROM y.b`` as a key
makes NULL equal to NULL in the equalities beside it, which become keys, too.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import conjunction, function
from blendfusion.planner.ir.nodes import KEY_COMPARISONS, Expr, Field, Node, Plan, Rel, conjuncts


def readable(plan: Plan) -> Plan:
    """A join with each comparison that must be no key within ``IS TRUE``, which joins the same
    rows, since NULL and false both join none. Any other relation is returned unchanged."""
    if not isinstance(plan, Rel) or plan.kind != "join":
        return plan
    width = plan.inputs[0].width
    terms = conjuncts(plan.exprs[0])
    equal = any(isinstance(term, Node) and term.name == "equal" for term in terms)
    if not any(_is_no_key(term, width, equal) for term in terms):
        return plan
    written = tuple(
        function("is_true", (term,)) if _is_no_key(term, width, equal) else term for term in terms
    )
    return replace(plan, exprs=(conjunction(written),))


def _is_no_key(term: Expr, left_width: int, equal: bool) -> bool:
    """Whether a conjunct must be no pair of keys; ``equal``: an equality stands beside it."""
    if not isinstance(term, Node) or term.name not in KEY_COMPARISONS:
        return False
    if equal and term.name == "is_not_distinct_from":
        return True
    a, b = term.children
    return (
        isinstance(a, Field)
        and isinstance(b, Field)
        and (a.index < left_width) == (b.index < left_width)
    )
