"""Expresses the NULL semantics of ``NOT IN (subquery)``, which Substrait's anti join lacks.

DataFusion marks such a join *null_aware*: a row stays only if its comparison with every row of the
subquery is FALSE. Substrait cannot express that, so two plain anti joins do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from blendfusion.errors import PlanError
from blendfusion.planner.ir.aggregates import distinct
from blendfusion.planner.ir.builders import function
from blendfusion.planner.ir.joins import join_type
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    conjuncts,
    fields,
    shift,
    walk,
)
from blendfusion.planner.ir.traversal import expressions, with_subplans


def null_aware(text: str) -> list[bool]:
    """For each anti join of a DataFusion plan (as text), from the top, whether it is null-aware."""
    lines = (line.strip() for line in text.splitlines())
    return [line.endswith(" null_aware") for line in lines if line.startswith("LeftAnti Join:")]


def with_nulls(plan: Plan, aware: Sequence[bool]) -> Plan:
    """``plan`` with each null-aware anti join replaced by two plain ones.

    ``aware`` has one entry per anti join from the top: whether it is null-aware. Raises PlanError
    if the numbers differ.

    before: ``l anti join r on a = b``, null-aware
    after:  ``(l anti join r on a = b) anti join (the values of b IS NULL in r) on it OR a IS NULL``
    safe:   a row stays if no b equals a, and none is NULL, and a is not NULL; or if r is empty. The
            second join has at most two rows on its right, the first can be a hash join.
    """
    if not any(aware):
        return plan
    anti = [p for p in _from_the_top(plan) if isinstance(p, Rel) and _is_anti(p)]
    if len(anti) != len(aware):
        raise PlanError("NOT IN in a place where Substrait does not say which join it is")
    # By identity: two equal joins may differ in this.
    chosen = {id(join) for join, is_aware in zip(anti, aware, strict=True) if is_aware}
    return _change(plan, chosen)


def _change(plan: Plan, chosen: set[int]) -> Plan:
    below = with_subplans(plan, partial(_change, chosen=chosen))
    return _aware(below) if id(plan) in chosen and isinstance(below, Rel) else below


def _from_the_top(plan: Plan) -> Iterator[Plan]:
    yield plan
    for expr in expressions(plan):
        for part in walk(expr):
            if isinstance(part, Node):
                for rel in part.rels:
                    yield from _from_the_top(rel)
    for below in plan.inputs:
        yield from _from_the_top(below)


def _is_anti(plan: Rel) -> bool:
    return plan.kind == "join" and join_type(plan) == "left_anti"


def _aware(plan: Rel) -> Plan:
    (condition,) = plan.exprs
    if len(conjuncts(condition)) > 1:
        raise PlanError("a correlated NOT IN cannot be expressed in Substrait")
    left, right = plan.inputs
    sides = _sides(condition, left.width)
    if sides is None:
        return replace(plan, exprs=(function("is_not_false", (condition,)),))
    a, b = sides
    null = Field(left.width)
    undecided = function("or", (null, function("is_null", (a,))))
    return replace(
        plan, inputs=(plan, distinct(right, function("is_null", (b,)))), exprs=(undecided,)
    )


def _sides(condition: Expr, n_left: int) -> tuple[Expr, Expr] | None:
    """(left operand, right operand over the right input) of an equality between both sides."""
    if not isinstance(condition, Node) or condition.name != "equal":
        return None
    a, b = sorted(condition.children, key=lambda e: min(fields(e), default=-1))
    if not fields(a) or max(fields(a)) >= n_left or min(fields(b)) < n_left:
        return None
    return a, shift(b, -n_left)
