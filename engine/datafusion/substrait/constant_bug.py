"""Hides conditions from which DataFusion 55 wrongly concludes that a column is constant.

DataFusion computes the interval of a column for which a condition holds: for ``CAST(ts AS DATE) =
DATE '2024-05-01'`` that of midnight alone, for ``i / 2 = 0`` that of zero, as if casts and the
division of whole numbers lost nothing. It then drops such a column from the keys of sorts and
windows. It computes no intervals for ``IS NOT DISTINCT FROM TRUE``.
"""

from __future__ import annotations

import re
from dataclasses import replace

from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.builders import boolean_literal, conjunction, function
from blendfusion.planner.ir.nodes import Expr, Node, Plan, Rel, conjuncts, fields, walk
from blendfusion.planner.ir.traversal import transform

_ORDERS = re.compile(
    r"^ *(?:(?:Sort|WindowAggr|DistinctOn): |Aggregate: .* ORDER BY )", re.MULTILINE
)
_LOSES = re.compile(r"\bCAST\(| / ")
_CONDITION = re.compile(r"^ *Filter: .*(?:\bCAST\(| / )", re.MULTILINE)
_LOSSLESS = ("string", "binary", "bool")
"""Types of which no intervals are computed."""


def may_drop_keys(plan: str) -> bool:
    """Whether a logical plan, of which this is the text, may have such conditions below an
    order."""
    return bool("Filter: " in plan and _LOSES.search(plan) and _ORDERS.search(plan))


def drops_keys(plan: str) -> bool:
    """Whether an optimized plan has them."""
    return bool(_CONDITION.search(plan) and _ORDERS.search(plan))


def with_hidden_conditions(plan: Plan) -> Plan:
    """``plan`` in which each of them is written ``condition IS NOT DISTINCT FROM TRUE``: the same
    rows pass."""
    return transform(plan, _hide, ("filter",))


def _hide(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "filter":
        return plan
    terms = conjuncts(plan.exprs[0])
    if not any(map(_loses, terms)):
        return plan
    true = boolean_literal(True)
    written = (function("is_not_distinct_from", (t, true)) if _loses(t) else t for t in terms)
    return replace(plan, exprs=(conjunction(tuple(written)),))


def _loses(term: Expr) -> bool:
    hidden = isinstance(term, Node) and term.name == "is_not_distinct_from"
    return not hidden and any(map(_merges_values, walk(term)))


def _merges_values(expr: Expr) -> bool:
    """Whether several values of a column may give one."""
    if not isinstance(expr, Node) or expr.name not in ("cast", "divide") or not fields(expr):
        return False
    if expr.name == "divide":
        return True
    kind = ExpressionMessage.FromString(expr.template).cast.type.WhichOneof("kind")
    return kind not in _LOSSLESS
