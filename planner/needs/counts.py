"""The number of rows from which on a count is large enough for all that reads it."""

from __future__ import annotations

from collections.abc import Iterable

from blendfusion.planner.ir.aggregates import Aggregation
from blendfusion.planner.ir.builders import literal, sides_of
from blendfusion.planner.ir.nodes import Expr, Field, fields, literal_like

_UP_TO = {"gt": 1, "gte": 0, "lt": 0, "lte": 1, "equal": 1, "not_equal": 1}
"""Comparisons of a count with a number, and what to add to the number: counts from there on have
the same result."""


def rows_to_count(agg: Aggregation, read: Iterable[Expr]) -> int | None:
    """The rows that an aggregate without groups needs, if it only counts them, for the expressions
    ``read`` over its columns; None: all."""
    if agg.n_before_measures or len(agg.measures) != 1:
        return None
    (measure,) = agg.measures
    plain = measure.name == "count" and measure.n_args == len(measure.exprs) == 1
    if not plain or not literal_like(measure.args[0]) or literal(measure.args[0]) is None:
        return None
    return _enough(read)


def _enough(read: Iterable[Expr]) -> int | None:
    most = 1
    for expr in read:
        own = _compared_up_to(expr)
        if own is None:
            return None
        most = max(most, own)
    return most


def _compared_up_to(expr: Expr) -> int | None:
    if isinstance(expr, Field):
        return None
    if not fields(expr):
        return 1
    for left, right, name in sides_of(expr):
        number = literal(right)
        if isinstance(left, Field) and type(number) is int and name in _UP_TO:
            return number + _UP_TO[name]
    return _enough(expr.children)
