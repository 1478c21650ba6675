"""Hides casts that DataFusion 55 would take out of comparisons: of decimals, and TRY_CAST.

DataFusion compares ``CAST(price AS INT) = 1`` without the cast, as ``price = 1.00``: 1.50 does not
pass then. Nor is ``TRY_CAST(id AS INT) > 5`` NULL where ``id`` is too large. It leaves
``nullif(CAST(price AS INT), NULL)`` as it is, which is the same value.
"""

from __future__ import annotations

import re
from dataclasses import replace

from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Type as TypeMessage

from blendfusion.planner.ir.builders import function
from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import Expr, Node, Plan, Rel, asks, fields, substitute, walk
from blendfusion.planner.ir.traversal import transform

_CAST = re.compile(r"CAST\(.* AS (?:U?Int\d+|Decimal\d+\()")
_DECIMALS = re.compile(r"^ *TableScan: .*:Decimal", re.MULTILINE)
_RETURNS_NULL = ExpressionMessage.Cast.FAILURE_BEHAVIOR_RETURN_NULL
_EXACT = ("i8", "i16", "i32", "i64", "decimal")


def may_lose_casts(plan: str) -> bool:
    """Whether a logical plan, of which this is the text, casts something to whole numbers or
    decimals."""
    return bool(_CAST.search(plan))


def has_decimals(plan: str) -> bool:
    """Whether a table has decimals, in a logical plan with its schemas as text."""
    return bool(_DECIMALS.search(plan))


def with_hidden_casts(plan: Plan, *, decimals: bool) -> Plan:
    """``plan`` with these casts hidden, but for casts of answers. ``decimals``: columns may be
    decimals; else only casts of casts to decimals are hidden, and TRY_CAST."""

    def hide(expr: Expr) -> Expr | None:
        if not isinstance(expr, Node) or expr.name != "cast" or not fields(expr) or asks(expr):
            return None
        cast = ExpressionMessage.FromString(expr.template).cast
        kind, tries = cast.type, cast.failure_behavior == _RETURNS_NULL
        if kind.WhichOneof("kind") not in _EXACT:
            return None
        inner = [_type(e) for e in walk(expr) if isinstance(e, Node) and e.name == "cast"][1:]
        if not (decimals or tries) and not any(
            t.HasField("decimal") and t.decimal.scale > kind.decimal.scale for t in inner
        ):
            return None
        null = ExpressionMessage()
        null.literal.null.CopyFrom(kind)
        return function("nullif", (expr, Node("literal", serialize(null))))

    def keep(plan: Plan) -> Plan:
        if not isinstance(plan, Rel):
            return plan
        exprs = tuple(substitute(expr, hide) for expr in plan.exprs)
        return plan if exprs == plan.exprs else replace(plan, exprs=exprs)

    return transform(plan, keep)


def _type(cast: Node) -> TypeMessage:
    return ExpressionMessage.FromString(cast.template).cast.type
