"""Hides casts of decimals that DataFusion 55 would take out of comparisons.

DataFusion compares ``CAST(price AS INT) = 1`` without the cast, as ``price = 1.00``: 1.50 does not
pass then. It leaves ``nullif(CAST(price AS INT), NULL)`` as it is, which is the same value.
"""

from __future__ import annotations

import re

from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.builders import function
from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import Expr, Node, Plan, Rel, asks, fields, substitute
from blendfusion.planner.ir.traversal import transform

_CAST = re.compile(r"CAST\(.* AS (?:U?Int\d+|Decimal\d+\()")
_EXACT = ("i8", "i16", "i32", "i64", "decimal")


def may_lose_casts(plan: str) -> bool:
    """Whether a logical plan, of which this is the text, casts something to whole numbers or
    decimals."""
    return bool(_CAST.search(plan))


def with_kept_casts(plan: Plan) -> Plan:
    """``plan`` with these casts hidden, but for casts of answers."""
    return transform(plan, _keep)


def _keep(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    exprs = tuple(substitute(expr, _hide) for expr in plan.exprs)
    if exprs == plan.exprs:
        return plan
    return Rel(plan.kind, plan.template, plan.inputs, exprs, plan.width)


def _hide(expr: Expr) -> Expr | None:
    if not isinstance(expr, Node) or expr.name != "cast" or not fields(expr) or asks(expr):
        return None
    kind = ExpressionMessage.FromString(expr.template).cast.type
    if kind.WhichOneof("kind") not in _EXACT:
        return None
    null = ExpressionMessage()
    null.literal.null.CopyFrom(kind)
    return function("nullif", (expr, Node("literal", serialize(null))))
