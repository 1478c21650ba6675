"""The questions that an expression asks for every row, whatever the answers are."""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.planner.ir.nodes import GATES, Ask, Expr, Node, literal_like
from blendfusion.udfs.declare.kinds import RowQuestion

_COMPARISONS = ("equal", "not_equal", "lt", "lte", "gt", "gte", "like")
_ARITHMETIC = ("add", "subtract", "multiply", "divide", "modulus", "power")
STRICT = frozenset((*_COMPARISONS, *_ARITHMETIC, "str_concat"))
"""Functions that are NULL if either of their two operands is."""

_IN_PARTS = frozenset((*GATES, "is_true", "is_not_true", "singular_or_list", "array_has"))
"""Functions that may not need all of their operands for a row."""

_TRUTHS = ("is_true", "is_not_true")

_NONE: frozenset[Ask] = frozenset()


def certain(expr: Expr) -> frozenset[Ask]:
    """The questions about rows that an expression asks for every row."""
    if isinstance(expr, Ask):
        about_rows = type(expr.call.ingredient.kind) is RowQuestion and expr.domain is None
        return frozenset((expr,)) if about_rows else _NONE
    if not isinstance(expr, Node) or expr.rels:
        return _NONE
    if expr.name == "if_then":
        return certain_of_case(expr.children)
    if expr.name in (*_TRUTHS, "coalesce"):
        return _of_condition(expr.children[0])
    return _NONE.union(*map(certain, expr.children)) if _reads_all(expr) else _NONE


def certain_of_case(branches: Sequence[Expr]) -> frozenset[Ask]:
    """The questions that CASE asks for every row from one of its conditions on."""
    if len(branches) < 2:
        return _NONE.union(*map(certain, branches))
    condition, result, *rest = branches
    return _of_condition(condition) | (certain(result) & certain_of_case(rest))


def always_asks(expr: Expr) -> bool:
    """Whether an expression asks a question on every row, if it has no answer yet."""
    if isinstance(expr, Node) and not expr.rels and expr.name in ("if_then", "coalesce", *_TRUTHS):
        return always_asks(expr.children[0])
    return bool(certain(expr))


def _of_condition(expr: Expr) -> frozenset[Ask]:
    """As ``certain``, for a condition: one that is a single question asks it for every row."""
    inner = expr
    while isinstance(inner, Node) and inner.name == "not":
        (inner,) = inner.children
    return certain(expr) if isinstance(inner, Ask) else _NONE


def _reads_all(expr: Node) -> bool:
    """Whether a function needs all of its operands for every row."""
    if expr.name in _IN_PARTS:
        return False
    return expr.name not in STRICT or all(map(literal_like, expr.children[1:]))
