"""Reads expressions of DataFusion's plans as trees, where a database may understand them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from datafusion import Expr

from blendfusion.services.scans.scan_filters import Application, Constant, Field, Tree

_OPERATORS = {
    "AND": "and_kleene",
    "OR": "or_kleene",
    "=": "equal",
    "!=": "not_equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_TESTS = {"Not": "invert", "IsNull": "is_null", "IsNotNull": "is_valid"}


class _Members(NamedTuple):
    values: pa.Array


def tree_of(expr: Expr) -> Tree | None:
    """The tree of an expression, whose fields are the qualified names of columns; None for one of
    another form."""
    try:
        return _read(expr)
    except (ValueError, LookupError, RecursionError, pa.ArrowException):
        return None


def membership(field: str, values: pa.Array) -> Tree:
    """The tree of ``field IN (values)``."""
    return Application("is_in", (Field(field),), {"value_set": _Members(values)})


def rename_columns(tree: Tree, names: Mapping[str, str]) -> Tree | None:
    """A tree with other names of columns; None if it reads one without."""
    if isinstance(tree, Constant):
        return tree
    if isinstance(tree, Field):
        return Field(names[tree.name]) if tree.name in names else None
    parts = [rename_columns(argument, names) for argument in tree.arguments]
    known = tuple(part for part in parts if part is not None)
    return Application(tree.name, known, tree.options) if len(known) == len(parts) else None


def _read(expr: Expr) -> Tree:
    """Raises LookupError or ValueError for an expression of another form."""
    node = expr.to_variant()  # ValueError for a function
    return _READERS[type(node).__name__](expr, node)


def _read_test(expr: Expr, node: Any) -> Tree:
    return Application(_TESTS[type(node).__name__], (_read(node.expr()),))


def _read_binary(expr: Expr, node: Any) -> Tree:
    return Application(_OPERATORS[node.op()], (_read(node.left()), _read(node.right())))


def _read_list(expr: Expr, node: Any) -> Tree:
    field, members = _read(node.expr()), [_read(member) for member in node.list()]
    known = [member.value for member in members if isinstance(member, Constant)]
    if len(known) < len(members) or not isinstance(field, Field):
        raise LookupError
    values = pa.array([value.as_py() for value in known], known[0].type)
    found = membership(field.name, values)
    return Application("invert", (found,)) if node.negated() else found


def _read_between(expr: Expr, node: Any) -> Tree:
    here = _read(node.expr())
    sides = (("greater_equal", node.low()), ("less_equal", node.high()))
    found = Application("and_kleene", tuple(Application(n, (here, _read(s))) for n, s in sides))
    return Application("invert", (found,)) if node.negated() else found


def _read_like(expr: Expr, node: Any) -> Tree:
    here, pattern = node.expr(), node.pattern()
    word = "NOT LIKE" if node.negated() else "LIKE"
    plain = f"{here.canonical_name()} {word} {pattern.canonical_name()}"
    if expr.canonical_name() != plain:  # ILIKE, or an ESCAPE of its own
        raise LookupError
    return Application("not_like" if node.negated() else "like", (_read(here), _read(pattern)))


def _read_cast(expr: Expr, node: Any) -> Tree:
    inner = node.expr()
    if expr.canonical_name() != f"CAST({inner.canonical_name()} AS Float64)":
        raise LookupError
    return Application("as_double", (_read(inner),))


_READERS: Mapping[str, Callable[[Expr, Any], Tree]] = {
    "Column": lambda expr, node: Field(node.qualified_name()),
    "Literal": lambda expr, node: Constant(expr.python_value()),
    "Alias": lambda expr, node: _read(node.expr()),
    "BinaryExpr": _read_binary,
    "Not": _read_test,
    "IsNull": _read_test,
    "IsNotNull": _read_test,
    "InList": _read_list,
    "Between": _read_between,
    "Like": _read_like,
    "Cast": _read_cast,
}
