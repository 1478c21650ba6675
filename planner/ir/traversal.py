"""Traversal of a plan's relations, including those of subqueries inside expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from blendfusion.planner.ir.joins import is_union_all, join_type
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Node,
    Plan,
    Rel,
    StoredRows,
    has_window,
    relations_below,
)

T = TypeVar("T")
Change = Callable[[Plan], Plan]


def expressions(plan: Plan) -> tuple[Expr, ...]:
    """The expressions of one relation."""
    return () if isinstance(plan, StoredRows) else plan.exprs


def subplans(plan: Plan) -> Iterator[Plan]:
    """``plan`` and all relations below it, including subqueries, children first.

    A relation with several parents, such as a partner of joins, comes once.
    """
    seen: set[int] = set()
    left = [(plan, False)]
    while left:
        part, below_came = left.pop()
        if below_came:
            yield part
        elif id(part) not in seen:
            seen.add(id(part))
            left.append((part, True))
            left.extend((below, False) for below in reversed(relations_below(part)))


def transform(plan: Plan, change: Change, kinds: Collection[str] = ()) -> Plan:
    """``plan`` with ``change`` applied to every relation, inputs before parents; to relations of
    these ``kinds`` only, if there are any.

    Returns the same object if nothing changed. A relation with several parents is changed once.
    """
    done: dict[int, Plan] = {}
    wanted = frozenset(kinds)

    def transform_part(part: Plan) -> Plan:
        if wanted and wanted.isdisjoint(part.kinds):
            return part
        new = done.get(id(part))
        if new is None:
            new = with_subplans(part, transform_part)
            if not wanted or new.kind in wanted:
                new = change(new)
            done[id(part)] = new
        return new

    return transform_part(plan)


def from_top(plan: Plan, change: Callable[[Plan, Change], Plan]) -> Plan:
    """The result of ``change`` for ``plan``. It also gets a function that does the same for a
    relation below. A relation with several parents is changed once."""
    done: dict[int, tuple[Plan, Plan]] = {}
    """By identity; a relation is held with its result, so that no other one gets its identity."""

    def change_part(part: Plan) -> Plan:
        if id(part) not in done:
            done[id(part)] = part, change(part, change_part)
        return done[id(part)][1]

    return change_part(plan)


def fold(plan: Plan, combine: Callable[[Plan, Sequence[T]], T]) -> T:
    """The result of ``combine`` for ``plan`` and the results of its inputs, without subqueries.
    Each relation is visited once."""
    return _fold(plan, combine, {})


def _fold(plan: Plan, combine: Callable[[Plan, Sequence[T]], T], done: dict[int, T]) -> T:
    if id(plan) not in done:
        below = [_fold(p, combine, done) for p in plan.inputs]
        done[id(plan)] = combine(plan, below)
    return done[id(plan)]


def with_subplans(plan: Plan, change: Change) -> Plan:
    """``plan`` with ``change`` applied to its direct inputs, including subqueries.

    Returns the same object if nothing changed.
    """
    if isinstance(plan, StoredRows):
        return plan
    old = plan.inputs
    new: Rel | Block = plan
    if len(old) == 1:  # called from here, and from no generator, since deep plans need the stack
        new = plan.with_inputs(change(old[0]))
    elif old:
        new = plan.with_inputs(*map(change, old))
    if not plan.has_subqueries:
        return new
    if isinstance(new, Rel):
        exprs = tuple(_in_expr(e, change) for e in new.exprs)
        if any(a is not b for a, b in zip(exprs, new.exprs, strict=True)):
            new = replace(new, exprs=exprs)
        return new
    where = tuple(_in_expr(e, change) for e in new.where)
    select = tuple(_in_expr(e, change) for e in new.select)
    same = zip((*where, *select), (*new.where, *new.select), strict=True)
    return new if all(a is b for a, b in same) else replace(new, where=where, select=select)


def asks_anything(plan: Plan) -> bool:
    """Whether ``plan`` contains a call."""
    return not isinstance(plan, StoredRows) and plan.has_calls


def branches(plan: Plan) -> list[Plan]:
    """Plans whose concatenated rows are those of ``plan``: the branches of a UNION ALL, also below
    filters and projections; otherwise ``plan`` alone."""
    if not isinstance(plan, Rel):
        return [plan]
    if is_union_all(plan):
        return [branch for below in plan.inputs for branch in branches(below)]
    if plan.kind == "filter" or (plan.kind == "project" and not any(map(has_window, plan.exprs))):
        found = branches(plan.inputs[0])
        return [plan.with_inputs(b) for b in found] if len(found) > 1 else [plan]
    return [plan]


def _in_expr(expr: Expr, change: Change) -> Expr:
    if isinstance(expr, Ask):
        args = tuple(_in_expr(a, change) for a in expr.args)
        domain = expr.domain if expr.domain is None else change(expr.domain)
        same = all(a is b for a, b in zip((*args, domain), (*expr.args, expr.domain), strict=True))
        return expr if same else replace(expr, args=args, domain=domain)
    if not isinstance(expr, Node) or not (expr.children or expr.rels):
        return expr
    children = tuple(_in_expr(c, change) for c in expr.children)
    rels = tuple(change(r) for r in expr.rels)
    same = all(
        a is b for a, b in zip((*children, *rels), (*expr.children, *expr.rels), strict=True)
    )
    return expr if same else replace(expr, children=children, rels=rels)


def has_order(plan: Plan) -> bool:
    """Whether the rows have an order or a bound: a sort or a limit stands above their source."""
    if isinstance(plan, Block):
        return plan.has_limit or has_order(plan.source)
    if not isinstance(plan, Rel):
        return False
    if plan.kind in ("project", "filter"):
        return has_order(plan.inputs[0])
    return plan.kind in ("sort", "fetch")


def meets_pairs(plan: Plan) -> bool:
    """Whether the rows are those of a join, without an order that a query can rely on."""
    if not isinstance(plan, Rel):
        return False
    if plan.kind in ("project", "filter"):
        return meets_pairs(plan.inputs[0])
    if plan.kind not in ("join", "cross"):
        return False
    kind = join_type(plan)
    if kind in ("left_semi", "left_anti", "left_mark"):
        return meets_pairs(plan.inputs[0])
    return kind in ("inner", "left", "right", "outer")
