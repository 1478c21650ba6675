"""Rewrites truth tests below groups, which DataFusion 55 would refuse: in columns, and among the
keys of grouping sets, which it computes below the aggregate.

Its logical plan takes ``b IS TRUE`` for a column without NULLs, its physical plan does not, and it
refuses plans that differ in this.
"""

from __future__ import annotations

from blendfusion.planner.ir.builders import boolean_literal, function
from blendfusion.planner.ir.nodes import Expr, Field, Node, substitute

_COMPARISONS = {
    "is_true": ("is_not_distinct_from", True),
    "is_false": ("is_not_distinct_from", False),
    "is_not_true": ("is_distinct_from", True),
    "is_not_false": ("is_distinct_from", False),
}
_NULL_TESTS = {"is_unknown": "is_null", "is_not_unknown": "is_not_null"}


def compare_truth(key: Expr) -> Expr:
    """``key`` with each ``b IS TRUE`` written ``b IS NOT DISTINCT FROM TRUE``, and others alike."""

    def rewrite(expr: Expr) -> Expr | None:
        if not isinstance(expr, Node) or len(expr.children) != 1:
            return None
        if expr.name in _NULL_TESTS:
            return function(_NULL_TESTS[expr.name], (compare_truth(expr.children[0]),))
        if expr.name not in _COMPARISONS:
            return None
        name, value = _COMPARISONS[expr.name]
        return function(name, (compare_truth(expr.children[0]), boolean_literal(value)))

    return key if isinstance(key, Field) else substitute(key, rewrite)
