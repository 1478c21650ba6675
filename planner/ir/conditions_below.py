"""Conditions that the rows of a relation meet because of what stands below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blendfusion.planner.ir.builders import filter_rows
from blendfusion.planner.ir.joins import is_union_all, join_type
from blendfusion.planner.ir.lineage import over, passed_on
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Plan,
    Rel,
    StoredRows,
    all_fields,
    conjuncts,
    has_window,
    inline,
    is_volatile,
    needs_model,
)

_KEEPS_MATCHES = ("inner", "left_semi")
"""Joins whose condition is true on all of their rows, of which it reads the first columns."""


def with_conditions(source: Plan, conditions: Sequence[Expr]) -> Plan:
    """The rows of ``source`` that meet the conditions; itself if they all do."""
    return filter_rows(source, tuple(c for c in conditions if not _holds(source, c)))


def _holds(plan: Plan, condition: Expr) -> bool:
    """Whether every row of ``plan`` meets the condition because a filter below it says so."""
    if isinstance(plan, StoredRows):
        return False
    if isinstance(plan, Block):
        if inline(condition, plan.select) in plan.where:
            return True
    elif _is_filter(plan) and condition in conjuncts(plan.exprs[0]):
        return True
    elif is_union_all(plan):
        return all(_holds(branch, condition) for branch in plan.inputs)
    inside = ((side, over(condition, columns)) for side, columns in passed_on(plan).items())
    return any(term is not None and _holds(plan.inputs[side], term) for side, term in inside)


def _is_filter(plan: Rel) -> bool:
    """Whether the condition of a relation is true on all of its rows, over its columns."""
    return plan.kind == "filter" or (plan.kind == "join" and join_type(plan) in _KEEPS_MATCHES)


@dataclass(frozen=True, slots=True)
class Path:
    """A relation, and the projections and filters above it: columns and predicates over it."""

    below: Rel
    columns: tuple[Expr, ...]
    filters: tuple[Expr, ...]


def path_below(plan: Plan) -> Path | None:
    """The path down from ``plan``; None if something in between must stay in its place."""
    columns: tuple[Expr, ...] = all_fields(plan.width)
    filters: tuple[Expr, ...] = ()
    while isinstance(plan, Rel) and plan.kind in ("project", "filter"):
        if any(is_volatile(e) or has_window(e) or needs_model(e) for e in plan.exprs):
            return None
        if plan.kind == "filter":
            filters = (*conjuncts(plan.exprs[0]), *filters)
        else:
            columns = tuple(inline(e, plan.exprs) for e in columns)
            filters = tuple(inline(e, plan.exprs) for e in filters)
        plan = plan.inputs[0]
    return Path(plan, columns, filters) if isinstance(plan, Rel) else None
