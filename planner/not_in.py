"""``NOT IN (subquery)`` keeps its NULLs, which Substrait's anti join forgets.

DataFusion marks such a join *null_aware*: a row stays only if its comparison with every row of the
subquery is FALSE. Substrait has no word for that, so the plan says it.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.errors import PlanError
from blendfusion.planner.plan import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    conjuncts,
    distinct,
    fields,
    function,
    join_type,
    shift,
)
from blendfusion.planner.tree import transform


def is_null_aware(text: str) -> bool:
    """Whether the anti joins of a DataFusion plan (as text) are null-aware.

    Raises PlanError if some are and some are not: they cannot be told apart after encoding.
    """
    anti = [line for line in text.splitlines() if line.lstrip().startswith("LeftAnti Join:")]
    aware = [line for line in anti if line.endswith(" null_aware")]
    if aware and len(aware) < len(anti):
        raise PlanError("NOT IN beside NOT EXISTS cannot be expressed in Substrait")
    return bool(aware)


def with_nulls(plan: Plan) -> Plan:
    """``plan`` with what a null-aware anti join keeps, said by two plain ones.

    before: ``l anti join r on a = b``, null-aware
    after:  ``(l anti join r on a = b) anti join (the values of b IS NULL in r) on it OR a IS NULL``
    safe:   a row stays if no b equals a, and none is NULL, and a is not NULL; or if r is empty. The
            second join has at most two rows on its right, the first can be a hash join.
    """
    return transform(plan, _aware)


def _aware(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "join" or join_type(plan) != "left_anti":
        return plan
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
    """(what the condition reads of the left, of the right as an expression over it) of an equality."""
    if not isinstance(condition, Node) or condition.name != "equal":
        return None
    a, b = sorted(condition.children, key=lambda e: min(fields(e), default=-1))
    if not fields(a) or max(fields(a)) >= n_left or min(fields(b)) < n_left:
        return None
    return a, shift(b, -n_left)
