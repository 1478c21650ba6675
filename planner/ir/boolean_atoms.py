"""A boolean expression as a function of its *atoms*: the smallest conditions that contain a call.

``f(x) AND p OR NOT f(x)`` has one atom, ``f(x)``, which stands in two places. ``g(x) <> 'a'`` has
the atom ``g(x) = 'a'``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from blendfusion.planner.ir.builders import (
    boolean_literal,
    boolean_null,
    case,
    function,
    literal,
)
from blendfusion.planner.ir.necessary import COMPARED_WITH_TRUE, TRUTH_TESTS
from blendfusion.planner.ir.nodes import Ask, Expr, Node, needs_model, substitute

TRUE = boolean_literal(True)
FALSE = boolean_literal(False)
NULL = boolean_null()
CONNECTIVES = frozenset(("and", "or", "not", "if_then", "coalesce", *TRUTH_TESTS))
"""Functions of booleans, which are no part of an atom."""
_BOOLEAN = frozenset(("and", "or", "not", "equal", "lt", "lte", "gt", "gte", *TRUTH_TESTS))
_OF_NULL = {"is_null": "is_unknown", "is_not_null": "is_not_unknown"}
_TRUTHS: dict[Expr, str] = {TRUE: "true", FALSE: "false", NULL: "null"}


def canonical(expr: Expr) -> Expr:
    """``expr`` with one spelling for what has several: ``<>`` is NOT ``=``, and a comparison with
    TRUE a test."""

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Node) or not needs_model(part):
            return None
        children = tuple(substitute(child, change) for child in part.children)
        if part.name in ("equal", "not_equal"):
            same = function("equal", children)
            return same if part.name == "equal" else function("not", (same,))
        tested = COMPARED_WITH_TRUE.get(part.name)
        if tested and literal(children[1]) is True:
            return function(tested, children[:1])
        if part.name in _OF_NULL and is_boolean(children[0]):
            return function(_OF_NULL[part.name], children)
        return None

    return substitute(expr, change)


def is_boolean(expr: Expr) -> bool:
    """Whether an expression is known to be boolean by its call or its function."""
    if isinstance(expr, Ask):
        return bool(expr.call.type == pa.bool_())
    return isinstance(expr, Node) and expr.name in _BOOLEAN


def atoms(expr: Expr) -> Iterator[Expr]:
    """The atoms of a canonical expression, once for each place."""
    if not needs_model(expr):
        return
    if isinstance(expr, Node) and expr.name in CONNECTIVES:
        for child in expr.children:
            yield from atoms(child)
    else:
        yield expr


def assign(expr: Expr, values: Mapping[Expr, Expr], *, cheap: bool = False) -> Expr:
    """A canonical expression with TRUE, FALSE or NULL in the place of atoms, simplified. ``cheap``:
    also of conditions without calls."""
    if expr in values:
        return values[expr]
    if not isinstance(expr, Node) or not (cheap or needs_model(expr)):
        return expr
    if expr.name in COMPARED_WITH_TRUE and literal(expr.children[1]) is True:
        expr = function(COMPARED_WITH_TRUE[expr.name], expr.children[:1])
    if expr.name not in CONNECTIVES:
        return expr
    return simplify(expr.name, tuple(assign(c, values, cheap=cheap) for c in expr.children))


def simplify(name: str, children: tuple[Expr, ...]) -> Expr:
    """A connective of these operands, without those that decide nothing."""
    if name in ("and", "or"):
        return _connect(name, children)
    if name == "if_then":
        branches, otherwise = live_branches(children)
        return case(branches, otherwise) if branches else otherwise or NULL
    if name == "coalesce":
        return _coalesce(children)
    truth = _TRUTHS.get(children[0])
    if truth is None:
        return function(name, children)
    if name == "not":
        return {"true": FALSE, "false": TRUE}.get(truth, NULL)
    return boolean_literal(truth in TRUTH_TESTS[name])


def _connect(name: str, children: tuple[Expr, ...]) -> Expr:
    decisive, neutral = (FALSE, TRUE) if name == "and" else (TRUE, FALSE)
    left = tuple(child for child in children if child != neutral)
    if decisive in left:
        return decisive
    return neutral if not left else left[0] if len(left) == 1 else function(name, left)


def live_branches(
    parts: Sequence[Expr],
) -> tuple[list[tuple[Expr, Expr]], Expr | None]:
    """(the branches of a CASE that may be met, its value where none is)"""
    branches: list[tuple[Expr, Expr]] = []
    for condition, result in zip(parts[0::2], parts[1::2], strict=False):
        if condition == TRUE:
            return branches, result
        if condition not in (FALSE, NULL):
            branches.append((condition, result))
    return branches, parts[-1] if len(parts) % 2 else None


def _coalesce(children: tuple[Expr, ...]) -> Expr:
    left: list[Expr] = []
    for child in children:
        if child != NULL:
            left.append(child)
        if literal(child) is not None:
            break
    return NULL if not left else left[0] if len(left) == 1 else function("coalesce", tuple(left))
