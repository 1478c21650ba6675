"""The expressions of DataFusion's plans, taken apart.

A part is a literal, a cast, an operator, a function or a window, without the parts below it:
(kind, message). Columns and names are left out, since a plan that crosses Substrait gets others.
Relations and parts come from the inside out, in the order in which Substrait has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from datafusion.plan import LogicalPlan

from blendfusion.datafusion.expression_messages import (
    AGGREGATE,
    ALIAS,
    COLUMN,
    PLACES,
    WINDOW,
    message_fields,
    same_field,
    within,
)

Part: TypeAlias = tuple[int, bytes]
SUBQUERY = 0
"""The kind of a part that is a subquery; its message is the kind of subquery."""
_HIDES = ("AggregateFunction", "WindowFunction")
"""Expressions with a condition or an order that is not among their operands."""
_ORDER = {WINDOW: (5, 6, 4, 13), AGGREGATE: (4, 2, 3)}
"""The fields of expressions in Substrait's order, where DataFusion has another one."""


_TOKENS = re.compile(
    r"\b(?:U?Int|Float|Utf8|LargeUtf8|Boolean|Decimal|Date|Time|Interval|Binary)\w*"
    r'\((?:"[^"]*"|[^()"])*\)'
    r"|\bDISTINCT |\bFILTER \(|\bIGNORE NULLS"
    r"|\b(?:ROWS|RANGE) BETWEEN [^\]]*? AND \w+ (?:ROW|PRECEDING|FOLLOWING)"
)
"""The words that are compared of expressions that DataFusion shows as text alone."""


def relations(plan: LogicalPlan) -> Iterator[tuple[LogicalPlan, Any]]:
    """Each relation of a plan outside of subqueries, behind its inputs, with its variant."""
    found, waiting = [], [plan]
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].inputs()
    for part in reversed(found):
        yield part, part.to_variant()


def expressions(node: Any) -> list[Any]:
    """The expressions of a relation that DataFusion shows as the variant ``node``."""
    read = _EXPRESSIONS.get(type(node).__name__)
    return [] if read is None else list(read(node))


def _of_join(node: Any) -> Iterator[Any]:
    for pair in node.on():
        yield from pair
    if node.filter() is not None:
        yield node.filter()


_EXPRESSIONS: dict[str, Callable[[Any], Iterable[Any]]] = {
    "Projection": lambda node: node.projections(),
    "Filter": lambda node: [node.predicate()],
    "Aggregate": lambda node: [*node.aggregate_exprs(), *node.group_by_exprs()],
    "Sort": lambda node: [key.expr() for key in node.sort_exprs()],
    "Join": _of_join,
    "WindowExpr": lambda node: node.get_window_expr() or (),
    "TableScan": lambda node: node.filters(),
    "Values": lambda node: [value for row in node.values() for value in row],
}


def parts(expr: Any, context: Any) -> Iterator[Part]:
    """The parts of an expression. ``context`` is DataFusion's own context, which knows the
    functions in it."""
    if not has_subquery(expr):
        yield from parts_of(expr.to_bytes(context))
        return
    # DataFusion cannot encode it, and does not show the plan of a subquery.
    inside = _inside(expr)
    if inside is None:
        yield SUBQUERY, " ".join(sorted(tokens(expr.canonical_name()))).encode()
        return
    for operand in inside:
        yield from parts(operand, context)
    if expr.variant_name() in _HIDES:
        yield SUBQUERY, " ".join(sorted(tokens(expr.canonical_name()))).encode()
    if _is_subquery(expr):
        yield SUBQUERY, expr.variant_name().encode()


def _inside(expr: Any) -> list[Any] | None:
    """The expressions in one with a subquery; None if DataFusion does not show them."""
    try:
        node = expr.to_variant()
        if hasattr(node, "subquery"):
            return [node.expr()] if hasattr(node, "expr") else []
        operands = [operand for operand in expr.rex_call_operands() if operand is not None]
        itself = expr.canonical_name()
        return None if itself in [operand.canonical_name() for operand in operands] else operands
    except Exception:  # DataFusion raises what it likes for kinds that Python has no class for
        return None


def tokens(text: str) -> list[str]:
    """The literals, frames and clauses of functions in the text of a plan."""
    return _TOKENS.findall(text)


def has_subquery(expr: Any) -> bool:
    """Whether an expression contains a subquery; a column may have the name of one that does."""
    if "<subquery>" not in expr.canonical_name() or expr.variant_name() == "Column":
        return False
    inside = _inside(expr)
    hidden = not inside or expr.variant_name() in _HIDES
    return hidden or _is_subquery(expr) or any(map(has_subquery, inside or ()))


def _is_subquery(expr: Any) -> bool:
    return "Subquery" in expr.variant_name() or expr.variant_name() == "Exists"


def parts_of(data: bytes) -> Iterator[Part]:
    """The parts of an encoded expression."""
    for kind, _, content in message_fields(data):
        if content is None or kind == COLUMN:
            continue
        places = PLACES.get(kind, {})
        below: dict[int, list[bytes]] = {}
        own = take_out(content, places, below)
        for number in _ORDER.get(kind, sorted(below)):
            for part in below.get(number, ()):
                yield from parts_of(part)
        if kind != ALIAS:
            yield kind, own


def take_out(content: bytes, places: Any, below: dict[int, list[bytes]]) -> bytes:
    """``content`` without the expressions in it, which go to ``below``, by their fields."""
    if not places:
        return content
    kept = b""
    for number, head, inner in message_fields(content):
        if number not in places:
            kept += same_field(head, inner)
            continue
        found = below.setdefault(number, [])
        if places[number]:
            kept += within(inner or b"", dict.fromkeys(places[number], ()), _into(found))
        else:
            found.append(inner or b"")
    return kept


def _into(found: list[bytes]) -> Callable[[bytes], bytes]:
    def take(part: bytes) -> bytes:
        found.append(part)
        return b""

    return take
