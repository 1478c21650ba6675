"""The truth values that an expression may have where some columns are NULL.

``b.x = 'u' OR b.k > 1`` is NULL where all columns of ``b`` are, so a filter by it keeps no row
without a partner in ``b``. A value of another type counts as TRUE or FALSE unless it is NULL.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from typing import Literal, TypeAlias

from blendfusion.planner.ir.builders import cast_to_text, is_null_literal, literal
from blendfusion.planner.ir.necessary import NULL_IF_ANY_IS, TRUTH_TESTS
from blendfusion.planner.ir.nodes import Ask, Expr, Field, Node
from blendfusion.udfs.declare.kinds import RowQuestion

Truth: TypeAlias = Literal["true", "false", "null"]
Truths: TypeAlias = frozenset[Truth]

ANY: Truths = frozenset(("true", "false", "null"))
NULL: Truths = frozenset(("null",))
PRESENT: Truths = frozenset(("true", "false"))
UNKNOWN = Node("unknown", b"")
"""An expression of which nothing is known, for reasoning only."""
_NOT: dict[Truth, Truth] = {"true": "false", "false": "true", "null": "null"}


def rejects(term: Expr, nulls: Collection[int]) -> bool:
    """Whether ``term`` is true for no row in which the columns ``nulls`` are NULL."""
    return "true" not in truths(term, nulls)


def truths(expr: Expr, nulls: Collection[int]) -> Truths:
    """The values that ``expr`` may have where the columns ``nulls`` are NULL; perhaps some more."""
    if isinstance(expr, Field):
        return NULL if expr.index in nulls else ANY
    if isinstance(expr, Ask):
        return NULL if _is_null(expr, nulls) else ANY
    if expr.name == "literal":
        value = literal(expr)
        if isinstance(value, bool):
            return frozenset(("true" if value else "false",))
        return NULL if is_null_literal(expr) else PRESENT
    if expr.name in ("and", "or"):
        return _truths_of_connective(expr, nulls)
    if expr.name == "not":
        return frozenset(_NOT[value] for value in truths(expr.children[0], nulls))
    if expr.name in TRUTH_TESTS:
        return _truths_of_test(truths(expr.children[0], nulls), TRUTH_TESTS[expr.name])
    if expr.name in ("is_null", "is_not_null"):
        wanted = NULL if expr.name == "is_null" else PRESENT
        return _truths_of_test(truths(expr.children[0], nulls), wanted)
    if expr.name in ("is_distinct_from", "is_not_distinct_from"):
        return _distinct(expr, nulls)
    if expr.name == "if_then":
        return _case(expr, nulls)
    if expr.name == "coalesce":
        return _truths_of_coalesce(expr, nulls)
    if expr.name in NULL_IF_ANY_IS or expr.name == "singular_or_list":
        operands = expr.children[: 1 if expr.name == "singular_or_list" else 2]
        return NULL if any(truths(part, nulls) == NULL for part in operands) else ANY
    return ANY


def _is_null(ask: Ask, nulls: Collection[int]) -> bool:
    """A call whose values are all NULL is NULL."""
    if not isinstance(ask.call.ingredient.kind, RowQuestion) or ask.call.is_struct:
        return False
    return bool(ask.args) and all(truths(argument, nulls) == NULL for argument in ask.args)


def _truths_of_connective(expr: Node, nulls: Collection[int]) -> Truths:
    decisive: Truth = "false" if expr.name == "and" else "true"
    found = [truths(part, nulls) for part in expr.children]
    if any(values == {decisive} for values in found):
        return frozenset((decisive,))
    met: set[Truth] = {decisive} if any(decisive in values for values in found) else set()
    if all(values - {decisive} for values in found):
        if any("null" in values for values in found):
            met.add("null")
        if all(_NOT[decisive] in values for values in found):
            met.add(_NOT[decisive])
    return frozenset(met)


def _truths_of_test(values: Truths, wanted: Collection[str]) -> Truths:
    met: set[Truth] = set()
    if any(value in wanted for value in values):
        met.add("true")
    if any(value not in wanted for value in values):
        met.add("false")
    return frozenset(met)


def _distinct(expr: Node, nulls: Collection[int]) -> Truths:
    left, right = (truths(part, nulls) for part in expr.children)
    both_null = left == right == NULL
    never_same = NULL in (left, right) and not left & right
    boolean = isinstance(literal(expr.children[1]), bool)
    if boolean:  # as DataFusion writes the branches of a CASE
        pairs = {a == b for a, b in product(left, right)}
    else:
        pairs = {True} if both_null else {False} if never_same else {True, False}
    same = expr.name == "is_not_distinct_from"
    return frozenset("true" if pair == same else "false" for pair in pairs)


def _case(expr: Node, nulls: Collection[int]) -> Truths:
    branches, otherwise = expr.children, NULL
    if len(branches) % 2:
        otherwise = truths(branches[-1], nulls)
    met: set[Truth] = set()
    for condition, result in zip(branches[0::2], branches[1::2], strict=False):
        values = truths(condition, nulls)
        if "true" in values:
            met |= truths(result, nulls)
        if values == {"true"}:
            return frozenset(met)
    return frozenset(met | otherwise)


def _truths_of_coalesce(expr: Node, nulls: Collection[int]) -> Truths:
    met: set[Truth] = set()
    for part in expr.children:
        values = truths(part, nulls)
        met |= values - NULL
        if "null" not in values:
            return frozenset(met)
    return frozenset(met | NULL)


def null_for_nulls(expr: Expr) -> bool:
    """Whether ``expr`` is NULL, without a question, where all columns that it reads are."""
    if isinstance(expr, Ask):
        return all(map(null_for_nulls, expr.args))
    inner = cast_to_text(expr)
    return isinstance(expr, Field) or (inner is not None and null_for_nulls(inner))
