"""Hides expressions that DataFusion 55 simplifies to others.

Two lists of one value become one: ``n IN (1, 2) AND n IN (3, 4)`` is FALSE also where n is NULL,
and a NULL in a list counts as no member. It leaves ``nullif(n IN (1, 2), NULL)`` as it is. ``n ^
n`` is 0 where n is NULL, and ``s ~ '.*'`` is FALSE. Beside operators of bits, it takes ``-n`` for
all bits of n turned: ``n & -n`` is 0, and ``-(n & m)`` is ``-n | -m``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from blendfusion.planner.ir.builders import (
    boolean_null,
    conjunction,
    function,
    is_null_literal,
    literal,
)
from blendfusion.planner.ir.nodes import Expr, Node, Plan, Rel, conjuncts, fields, substitute, walk
from blendfusion.planner.ir.traversal import transform

_LIST = re.compile(r" IN \(\[| = .*? OR .*? = | != .*? AND .*? != ")
_OTHERS = re.compile(
    r"BIT_XOR|\(- .* [&|] | [&|] .*\(- |"
    r'(?: ~\*? |regexp_like\(.*)(?:Utf8|LargeUtf8|Utf8View)\("\.\*"\)'
)
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
_MATCHES = ("regex_match", "regex_imatch", "regexp_like")
_CHAINS = {"or": "equal", "and": "not_equal"}
"""The operators between comparisons with literals of which DataFusion makes a list."""


def may_simplify(plan: str) -> bool:
    """Whether a logical plan, of which this is the text, may have such expressions."""
    if _OTHERS.search(plan):
        return True
    return any(len(_LIST.findall(line)) > 1 for line in plan.splitlines())


def with_hidden_parts(plan: Plan) -> Plan:
    """``plan`` with these expressions in other words."""

    def keep(part: Plan) -> Plan:
        if not isinstance(part, Rel):
            return part
        exprs = tuple(map(_condition if part.kind == "filter" else _keep, part.exprs))
        return part if exprs == part.exprs else replace(part, exprs=exprs)

    return transform(plan, keep)


def _condition(condition: Expr) -> Expr:
    """A condition of rows, in which NULL is FALSE: lists stay below AND and OR, where they are
    seen by the readers of files."""
    terms = conjuncts(condition)
    if any(is_null_literal(item) for part in walk(condition) for item in _items(part)):
        return _keep(condition)
    written = tuple(term if _is_positive(term) else _keep(term) for term in terms)
    return condition if written == tuple(terms) else conjunction(written)


def _is_positive(term: Expr) -> bool:
    """Whether all lists in a condition are below AND and OR alone, and nothing else is hidden."""
    if isinstance(term, Node) and term.name in ("and", "or"):
        return all(map(_is_positive, term.children))
    inner = term.children if _items(term) else (term,)
    return not any(_values(part) or _reword(part) != part for part in inner)


def _keep(expr: Expr) -> Expr:
    several = {value for value, count in Counter(_values(expr)).items() if count > 1}
    return _reword(_with_hidden_lists(expr, several) if several else expr)


# --- lists ---


def _values(expr: Expr, connected: str = "") -> list[Expr]:
    """The values of lists in ``expr``, once for each list. ``connected``: by what it is connected
    with others."""
    chain = expr if isinstance(expr, Node) and expr.name in _CHAINS else None
    name = chain.name if chain else ""
    below = [value for child in expr.children for value in _values(child, name)]
    if _items(expr):
        return [expr.children[0], *below]
    return [*_chain_items(chain), *below] if chain and name != connected else below


def _items(expr: Expr) -> tuple[Expr, ...]:
    is_list = isinstance(expr, Node) and expr.name == "singular_or_list"
    return expr.children[1:] if is_list else ()


def _chain_items(expr: Node) -> list[Expr]:
    """The values that a chain compares more than once with literals."""
    compared = Counter(
        value
        for part in _operands(expr, expr.name)
        if isinstance(part, Node) and part.name == _CHAINS[expr.name]
        for value, other in (part.children, part.children[::-1])
        if _is_literal(other) and not _is_literal(value)
    )
    return [value for value, count in compared.items() if count > 1]


def _operands(expr: Expr, name: str) -> Iterator[Expr]:
    if isinstance(expr, Node) and expr.name == name:
        for child in expr.children:
            yield from _operands(child, name)
    else:
        yield expr


def _is_literal(expr: Expr) -> bool:
    return isinstance(expr, Node) and expr.name == "literal"


def _with_hidden_lists(expr: Expr, values: set[Expr]) -> Expr:
    def hide(part: Expr) -> Expr | None:
        if not isinstance(part, Node):
            return None
        is_list = bool(_items(part)) and part.children[0] in values
        if not is_list and not (part.name in _CHAINS and values.intersection(_chain_items(part))):
            return None
        inner = replace(part, children=tuple(substitute(c, hide) for c in part.children))
        return function("nullif", (part if part.name in _CHAINS else inner, boolean_null()))

    return substitute(expr, hide)


# --- other expressions ---


def _reword(expr: Expr) -> Expr:
    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Node):
            return None
        new = _other_words(replace(part, children=tuple(map(_reword, part.children))))
        return None if new == part else new

    return substitute(expr, change)


def _other_words(expr: Node) -> Expr:
    """``expr`` in words of the same value and type; its parts have theirs."""
    if expr.name in _MATCHES and literal(expr.children[1]) == ".*":
        return function("equal", (expr.children[0], expr.children[0]))
    if expr.name == "negate" and _is_of(expr.children[0], _BITS):
        return _negative(expr.children[0])
    if expr.name not in _BITS:
        return expr
    a, b = (_negative(c.children[0]) if _is_of(c, ("negate",)) else c for c in expr.children)
    if expr.name == "bitwise_xor" and fields(a) & fields(b):
        either, both = (replace(expr, name=f"bitwise_{n}", children=(a, b)) for n in ("or", "and"))
        return function("subtract", (either, both))
    return expr if (a, b) == expr.children else replace(expr, children=(a, b))


def _negative(expr: Expr) -> Expr:
    return function("subtract", (function("subtract", (expr, expr)), expr))


def _is_of(expr: Expr, names: tuple[str, ...]) -> bool:
    return isinstance(expr, Node) and expr.name in names
