"""Conditions without a model that hold wherever an expression with calls has a certain value.

A call whose values are all NULL is NULL for free, a comparison of it as well, and ``p AND llm(x)``
is never true where ``p`` is not. A condition is true wherever the expression has the value; the
reverse need not hold. An expression is read in SQL's three-valued logic; a condition counts as
false where it is NULL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from blendfusion.planner.ir.builders import boolean_literal, function, is_null_literal, literal
from blendfusion.planner.ir.nodes import (
    Ask,
    Expr,
    Field,
    Node,
    conjuncts,
    is_volatile,
    needs_model,
)
from blendfusion.udfs.declare.kinds import RowQuestion

ALWAYS = boolean_literal(True)
NEVER = boolean_literal(False)
NULL_IF_ANY_IS = frozenset(
    (
        *("equal", "not_equal", "lt", "lte", "gt", "gte", "like", "ilike", "cast"),
        *("add", "subtract", "multiply", "divide", "modulus", "str_concat", "upper", "lower"),
    )
)
"""Functions that are NULL if one of their operands is."""
_SAFE = frozenset(
    (
        *("literal", "and", "or", "not", "equal", "not_equal", "lt", "lte", "gt", "gte", "like"),
        *("ilike", "singular_or_list", "is_null", "is_not_null", "is_true", "is_false"),
        *("is_unknown", "is_not_true", "is_not_false", "is_not_unknown", "is_distinct_from"),
        *("is_not_distinct_from", "coalesce", "upper", "lower", "if_then", "str_concat"),
    )
)
"""Functions that raise no error, whatever their operands are."""
TRUTH_TESTS: dict[str, tuple[str, ...]] = {
    "is_true": ("true",),
    "is_false": ("false",),
    "is_unknown": ("null",),
    "is_not_true": ("false", "null"),
    "is_not_false": ("true", "null"),
    "is_not_unknown": ("true", "false"),
}
"""The values of the operand for which each test is true."""
_TRUTHS: dict[object, str] = {True: "true", False: "false"}
_VALUES = ("true", "false", "null")
COMPARED_WITH_TRUE = {"is_distinct_from": "is_not_true", "is_not_distinct_from": "is_true"}
"""Comparisons with TRUE, and the tests that they are."""


def necessary(expr: Expr, value: str = "true") -> Expr:
    """A condition without calls that is true wherever the boolean ``expr`` is ``value``, one of
    "true", "false" and "null"; ``ALWAYS`` where nothing is known."""
    return ALWAYS if is_volatile(expr) else _necessary(expr, value)


def to_fail(expr: Expr) -> Expr:
    """A condition without calls that is true wherever the boolean ``expr`` is not true. Where it is
    not true, ``expr`` is true whatever the answers are."""
    return any_of([necessary(expr, "false"), necessary(expr, "null")])


def _necessary(expr: Expr, value: str = "true") -> Expr:
    if not needs_model(expr):
        if not never_fails(expr):
            return ALWAYS
        if isinstance(literal(expr), bool) or is_null_literal(expr):
            return ALWAYS if _TRUTHS.get(literal(expr), "null") == value else NEVER
        tests = {"true": expr, "false": function("not", (expr,))}
        return tests.get(value) or function("is_null", (expr,))
    if isinstance(expr, Node) and expr.name in ("and", "or"):
        decisive, other = ("false", "true") if expr.name == "and" else ("true", "false")
        found = [_necessary(part, value) for part in expr.children]
        if value != "null":
            return any_of(found) if value == decisive else all_of(found)
        either = (
            any_of([_necessary(p, other), n]) for p, n in zip(expr.children, found, strict=True)
        )
        return all_of([*either, any_of(found)])
    if isinstance(expr, Node) and expr.name == "not":
        return _necessary(expr.children[0], {"true": "false", "false": "true"}.get(value, value))
    if isinstance(expr, Node) and expr.name in TRUTH_TESTS:
        if value == "null":
            return NEVER
        met = TRUTH_TESTS[expr.name]
        wanted = met if value == "true" else tuple(v for v in _VALUES if v not in met)
        return any_of([_necessary(expr.children[0], v) for v in wanted])
    if isinstance(expr, Node) and expr.name in COMPARED_WITH_TRUE:
        return _distinct(expr, value)
    if isinstance(expr, Node) and expr.name == "is_not_null":
        return {"true": _not_null(expr.children[0]), "null": NEVER}.get(value, ALWAYS)
    if isinstance(expr, Node) and expr.name == "is_null":
        return {"false": _not_null(expr.children[0]), "null": NEVER}.get(value, ALWAYS)
    if isinstance(expr, Node) and expr.name == "if_then":
        return _case(expr, value)
    if value == "null":
        return ALWAYS
    if isinstance(expr, Node) and expr.name == "singular_or_list":
        return _not_null(expr.children[0])
    return _not_null(expr)


def is_null_test(condition: Expr) -> bool:
    """Whether a condition only tests one expression for NULL."""
    return isinstance(condition, Node) and condition.name == "is_not_null"


def not_null(expr: Expr) -> Expr:
    """A condition without calls that is true wherever ``expr`` is not NULL."""
    return ALWAYS if is_volatile(expr) else _not_null(expr)


def _not_null(expr: Expr) -> Expr:
    if not needs_model(expr):
        tested = _uncast(expr)
        if not _reads(tested):
            return ALWAYS
        if never_fails(tested):
            return function("is_not_null", (tested,))
        # ``n + 1`` may overflow where it is tested early; ``n`` is NULL where it is.
        strict = isinstance(tested, Node) and tested.name in NULL_IF_ANY_IS
        return all_of([_not_null(part) for part in tested.children[:2]]) if strict else ALWAYS
    if isinstance(expr, Ask):
        if not isinstance(expr.call.ingredient.kind, RowQuestion) or expr.call.is_struct:
            return ALWAYS
        return any_of([_not_null(argument) for argument in expr.args])
    if isinstance(expr, Node) and expr.name in NULL_IF_ANY_IS:
        # The third operand of LIKE is absent or a literal.
        return all_of([_not_null(part) for part in expr.children[:2]])
    return ALWAYS


def _distinct(expr: Node, value: str) -> Expr:
    """DataFusion writes the branches of a CASE as comparisons of its condition with TRUE."""
    left, right = expr.children
    if literal(right) is not True:
        return NEVER if value == "null" else ALWAYS
    return _necessary(function(COMPARED_WITH_TRUE[expr.name], (left,)), value)


def _case(expr: Node, value: str) -> Expr:
    branches, otherwise = expr.children, None
    if len(branches) % 2:
        otherwise = branches[-1]
    ways: list[Expr] = []
    reached: list[Expr] = []
    for condition, result in zip(branches[0::2], branches[1::2], strict=False):
        ways.append(all_of([*reached, _necessary(condition), _necessary(result, value)]))
        reached.append(any_of([_necessary(condition, "false"), _necessary(condition, "null")]))
    if otherwise is not None:
        ways.append(all_of([*reached, _necessary(otherwise, value)]))
    elif value == "null":
        ways.append(all_of(reached))
    return any_of(ways)


def never_fails(expr: Expr) -> bool:
    """Whether an expression has a value on every row, also on those from which the query keeps it:
    ``n <> 0 AND 10 / n > 1``."""
    if isinstance(expr, Field):
        return True
    return isinstance(expr, Node) and expr.name in _SAFE and all(map(never_fails, expr.children))


def _uncast(expr: Expr) -> Expr:
    """The operand of casts: it is NULL where they are, or the cast fails."""
    while isinstance(expr, Node) and expr.name == "cast":
        expr = expr.children[0]
    return expr


def _reads(expr: Expr) -> bool:
    return isinstance(expr, Field) or (
        isinstance(expr, Node) and any(_reads(part) for part in expr.children)
    )


def all_of(terms: Sequence[Expr]) -> Expr:
    """The conjunction of conditions without calls."""
    kept = [t for t in dict.fromkeys(_flat("and", terms)) if t != ALWAYS]
    if NEVER in kept:
        return NEVER
    return ALWAYS if not kept else kept[0] if len(kept) == 1 else function("and", tuple(kept))


def any_of(terms: Sequence[Expr]) -> Expr:
    """The disjunction of conditions without calls."""
    kept = [t for t in dict.fromkeys(_flat("or", terms)) if t != NEVER]
    if ALWAYS in kept:
        return ALWAYS
    if len(kept) < 2:
        return kept[0] if kept else NEVER
    every = [part for term in kept for part in conjuncts(term)]
    if len({*every}) == len(every):
        return function("or", tuple(kept))
    kept = _least(kept)
    if len(kept) < 2:
        return kept[0]
    # (a AND b) OR (a AND c) is a AND (b OR c)
    conditions = [{*conjuncts(term)} for term in kept]
    common = [part for part in conjuncts(kept[0]) if all(part in own for own in conditions)]
    if not common:
        return function("or", tuple(kept))
    rest = [all_of([part for part in conjuncts(t) if part not in common]) for t in kept]
    return all_of([*common, any_of(rest)])


def _least(terms: Sequence[Expr]) -> list[Expr]:
    """The terms of a disjunction without those that imply another: ``a OR (a AND b)`` is ``a``, and
    of ``(a AND b) OR (b AND a)`` the first stays."""
    conditions = [{*conjuncts(term)} for term in terms]
    having: dict[Expr, list[int]] = {}
    for place, own in enumerate(conditions):
        for part in own:
            having.setdefault(part, []).append(place)
    kept = []
    for place, own in enumerate(conditions):
        shared = Counter(other for part in own for other in having[part])
        implied = (o for o, n in shared.items() if o != place and n == len(conditions[o]))
        if not any(len(conditions[o]) < len(own) or o < place for o in implied):
            kept.append(terms[place])
    return kept


def _flat(name: str, terms: Sequence[Expr]) -> list[Expr]:
    flat: list[Expr] = []
    for term in terms:
        if isinstance(term, Node) and term.name == name:
            flat += _flat(name, term.children)
        else:
            flat.append(term)
    return flat
