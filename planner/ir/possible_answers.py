"""Answers that stand for all answers to the calls of an expression: whatever the expression can be,
it is on one of their combinations."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import TypeAlias

import pyarrow as pa
from substrait.proto import Expression as ExpressionMessage

from blendfusion.planner.ir.builders import literal
from blendfusion.planner.ir.literals import literal_text
from blendfusion.planner.ir.nodes import (
    Ask,
    Expr,
    Field,
    Node,
    asks,
    is_volatile,
    literal_like,
    substitute,
    walk,
)
from blendfusion.types import Constraint, Task
from blendfusion.udfs.declare.call import Call

ORDERED = ("equal", "not_equal", "lt", "lte", "gt", "gte")
MOST_COMBINATIONS = 4096
_MOST_SET_ITEMS = 8
"""The items of a closed set whose subsets are lists; with more, there are too many."""
_LARGEST = 2**53
"""Whole numbers up to here are numbers of other types as well."""
_COMPARISONS = (
    *(*ORDERED, "singular_or_list"),
    *("is_distinct_from", "is_not_distinct_from"),
)
_NUMERIC = frozenset(("i8", "i16", "i32", "i64", "fp32", "fp64", "decimal"))

Possible: TypeAlias = "tuple[dict[Ask, Field], pa.Table]"


def _as_planned(task: Task) -> Task:
    return task


def possible_answers(expr: Expr, sent: Callable[[Task], Task] = _as_planned) -> Possible | None:
    """(the column of each call, a row for each combination of its answers, NULL among them); None
    where an expression reads more than answers, or no finite number of these tells everything.
    ``sent``: the task that a model reads, with the options of a subquery."""
    own = _outermost(expr)
    if not own or is_volatile(expr) or _reads_beside(expr):
        return None
    lists: list[list[object]] = []
    for ask in own:
        found = _answers(ask, expr, sent(ask.call.task).constraint)
        if found is None:
            return None
        lists.append([*found, None])
    if math.prod(map(len, lists)) > MOST_COMBINATIONS:
        return None
    columns = zip(*product(*lists), strict=True)
    try:
        arrays = [pa.array(c, ask.call.type) for c, ask in zip(columns, own, strict=True)]
    except (pa.ArrowException, OverflowError):
        return None
    names = [str(i) for i in range(len(own))]
    return {ask: Field(i) for i, ask in enumerate(own)}, pa.table(arrays, names=names)


def _outermost(expr: Expr) -> list[Ask]:
    """The calls of an expression that are not arguments of others, each once."""
    if isinstance(expr, Ask):
        return [expr]
    return list(dict.fromkeys(ask for child in expr.children for ask in _outermost(child)))


def _reads_beside(expr: Expr) -> bool:
    """Whether an expression reads columns or relations besides the arguments of calls."""
    if isinstance(expr, Ask):
        return expr.domain is not None
    if isinstance(expr, Field) or expr.rels or expr.name.startswith("window:"):
        return True
    return any(map(_reads_beside, expr.children))


def _answers(ask: Ask, expr: Expr, constraint: Constraint) -> Sequence[object] | None:
    call = ask.call
    kind = call.ingredient.kind
    if call.is_struct or kind.has_body or not kind.asks_model:
        return None
    if call.bounds is None:
        if call.type != call.answer_type:
            return None
        if pa.types.is_boolean(call.type):
            return [False, True]
        if constraint.kind == "choice":
            return None if constraint.query is not None else constraint.options
        if constraint.kind == "list":
            return _subsets(ask, constraint, expr)
    operands = _compared_with(ask, expr)
    if operands is None:
        return None
    return _around(constraint, operands) if call.bounds is None else _within(call.bounds, operands)


def _subsets(ask: Ask, constraint: Constraint, expr: Expr) -> Sequence[object] | None:
    """The lists of items of a closed set, of which an expression only asks whether they have an
    item."""
    item = constraint.item
    if item is None or item.kind != "choice" or item.query is not None:
        return None
    if len(item.options) > _MOST_SET_ITEMS or not _is_only_searched(ask, expr):
        return None
    sizes = range(len(item.options) + 1)
    return [list(some) for n in sizes for some in combinations(item.options, n)]


def _is_only_searched(ask: Ask, expr: Expr) -> bool:
    parents = [e for e in walk(expr) if isinstance(e, Node) and ask in e.children]
    return all(
        p.name == "array_has" and p.children[0] == ask and literal_like(p.children[1])
        for p in parents
    )


def _compared_with(ask: Ask, expr: Expr) -> list[Expr] | None:
    """The literals with which an expression compares the answers; None if it does more."""
    found: list[Expr] = []

    def visit(part: Expr) -> bool:
        if part == ask:
            return False  # as a value of its own
        if isinstance(part, Node) and part.name in _COMPARISONS:
            sides = [child for child in part.children if _uncast(child) != ask]
            if len(sides) < len(part.children):
                found.extend(sides)
                return all(map(literal_like, sides))
        if isinstance(part, Node) and part.name in ("is_null", "is_not_null"):
            return part.children[0] == ask or visit(part.children[0])
        return isinstance(part, Ask) or all(map(visit, part.children))

    return found if visit(expr) else None


def _uncast(expr: Expr) -> Expr:
    """The operand of casts to a number."""
    while isinstance(expr, Node) and expr.name == "cast":
        to = ExpressionMessage.FromString(expr.template).cast.type.WhichOneof("kind")
        if to not in ("fp64", "i64", "decimal"):
            break
        expr = expr.children[0]
    return expr


def _around(constraint: Constraint, operands: Sequence[Expr]) -> Sequence[object] | None:
    """Answers at, between and beyond the literals that they are compared with."""
    if constraint.kind in ("text", "regex"):
        texts = [literal(e) for e in operands]
        known = [text for text in texts if isinstance(text, str)]
        return None if len(known) < len(texts) else ["", *known, *(f"{t}\0" for t in known)]
    if constraint.kind == "date":
        return _days(operands)
    if (finite := _numbers(operands)) is None:
        return None
    finite = finite or [0.0]
    if constraint.kind == "integer":
        return sorted({math.floor(n) + step for n in finite for step in (-1, 0, 1, 2)})
    if constraint.kind == "number":
        return _between([finite[0] - 1, *finite, finite[-1] + 1])
    return None


def _within(bounds: tuple[float, float], operands: Sequence[Expr]) -> Sequence[object] | None:
    """Answers at bounds, and at and between the literals inside them."""
    if (finite := _numbers(operands)) is None:
        return None
    low, high = bounds
    return _between(sorted({low, high, *(n for n in finite if low < n < high)}))


def _numbers(operands: Sequence[Expr]) -> list[float] | None:
    """The different values of numeric literals, in their order; None if they are others."""
    numbers = {number_of(e) for e in operands}
    finite = sorted(n for n in numbers if n is not None and abs(n) < _LARGEST)
    return finite if len(finite) == len(numbers) else None


def _between(points: Sequence[float]) -> list[object]:
    return [*map(float, points), *((a + b) / 2 for a, b in pairwise(points))]


def number_of(expr: Expr) -> float | None:
    """The value of a numeric literal."""
    if not isinstance(expr, Node) or expr.name != "literal":
        return None
    message = ExpressionMessage.FromString(expr.template).literal
    if message.WhichOneof("literal_type") not in _NUMERIC:
        return None
    try:
        return float(literal_text(message))
    except ValueError:  # CAST('NaN' AS DOUBLE)
        return None


def _days(operands: Sequence[Expr]) -> list[object] | None:
    found: list[object] = [datetime.date(1970, 1, 1)]
    for expr in operands:
        if not isinstance(expr, Node) or expr.name != "literal":
            return None
        message = ExpressionMessage.FromString(expr.template).literal
        if message.WhichOneof("literal_type") != "date" or abs(message.date) > 700_000:
            return None
        day = datetime.date(1970, 1, 1) + datetime.timedelta(days=message.date)
        found += [day - datetime.timedelta(days=1), day, day + datetime.timedelta(days=1)]
    return found


def over_answers(expr: Expr, columns: Mapping[Ask, Field]) -> Expr:
    """``expr`` with columns in the place of calls."""
    return substitute(expr, lambda part: columns.get(part) if isinstance(part, Ask) else None)


Evaluate: TypeAlias = Callable[[Expr, pa.Table], "pa.ChunkedArray"]
"""The values of an expression on the rows of a table. Raises any exception."""


def outcomes(
    expr: Expr, evaluate: Evaluate, sent: Callable[[Task], Task] = _as_planned
) -> frozenset[bool | None] | None:
    """The values that a boolean expression can have, whatever the answers are; None if unknown."""
    possible = possible_answers(expr, sent)
    if possible is None:
        return None
    columns, table = possible
    try:
        values = evaluate(over_answers(expr, columns), table)
    except Exception:  # an answer for which the expression fails: it decides nothing
        return None
    return frozenset(values.to_pylist()) if pa.types.is_boolean(values.type) else None


def is_obvious(expr: Expr) -> bool:
    """Whether a condition can be true and false for sure: it is an answer, or compares it with one
    of its options, or connects such conditions about different calls."""
    if isinstance(expr, Ask):
        return True
    if not isinstance(expr, Node):
        return False
    if expr.name in ("and", "or", "not"):
        calls = [set(asks(child)) for child in expr.children]
        return all(map(is_obvious, expr.children)) and sum(map(len, calls)) == len(
            set().union(*calls)
        )
    if expr.name in ("is_null", "is_not_null"):
        return isinstance(expr.children[0], Ask)
    value, *others = expr.children or (expr,)
    if not isinstance(value, Ask) or not all(isinstance(e, Node) for e in others):
        return False
    return _is_distinguished(value.call, expr.name, others)


def _is_distinguished(call: Call, comparison: str, others: Sequence[Expr]) -> bool:
    """Whether some answers pass a comparison with literals, and some do not."""
    constraint = call.task.constraint
    if call.bounds is None and constraint.kind == "choice":
        known = any(literal(e) in constraint.options for e in others)
        return known and comparison in ("equal", "not_equal", "singular_or_list")
    if comparison not in ORDERED or any(e.name != "literal" for e in others if isinstance(e, Node)):
        return False
    if call.bounds is None:
        return constraint.kind in ("integer", "number", "text", "regex", "date", "timestamp")
    numbers = [number_of(e) for e in others]
    low, high = call.bounds
    return all(n is not None and low < n < high for n in numbers)
