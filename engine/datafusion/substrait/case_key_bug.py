"""Computes CASE below sorts, windows and aggregates, whose keys DataFusion 55 does not recognise.

A CASE with a function, such as ``CASE WHEN length(a) > 3 THEN b END``, is unequal to itself once
its columns have moved, as below ``ORDER BY``: DataFusion refuses its own plan (SanityCheckPlan).
"""

from __future__ import annotations

from blendfusion.planner.ir.builders import project
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    has_window,
    substitute,
    windows,
)
from blendfusion.planner.ir.sorts import directions_of, sorted_by
from blendfusion.planner.ir.traversal import transform

REFUSAL = "SanityCheckPlan"
"""A word of DataFusion's message."""


def with_computed_cases(plan: Plan) -> Plan:
    """``plan`` in which each CASE among the keys of a relation is a column of the relation
    below."""
    return transform(plan, _compute_cases, ("sort", "project", "aggregate"))


def _compute_cases(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or not plan.inputs:
        return plan
    (source,) = plan.inputs
    columns: list[Expr] = [*all_fields(source.width)]

    def compute(expr: Expr) -> Expr | None:
        if not isinstance(expr, Node) or expr.name != "if_then" or has_window(expr):
            return None
        if expr not in columns:
            columns.append(expr)
        return Field(columns.index(expr))

    def in_windows(expr: Expr) -> Expr:
        of_window = {w: substitute(w, compute) for w in windows(expr)}
        return substitute(expr, of_window.get)

    change = in_windows if plan.kind == "project" else lambda expr: substitute(expr, compute)
    exprs = tuple(map(change, plan.exprs))
    if len(columns) == source.width:
        return plan
    below = project(source, tuple(columns))
    if plan.kind == "sort":
        return project(sorted_by(below, exprs, directions_of(plan)), all_fields(source.width))
    return Rel(plan.kind, plan.template, (below,), exprs, plan.width)
