"""``NOT IN (subquery)`` keeps its NULLs, which Substrait's anti join forgets.

DataFusion marks such a join *null_aware*: a row stays only if its comparison with every row of the
subquery is FALSE. Substrait has no word for that, so the condition says it.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.errors import PlanError
from blendfusion.planner.plan import Plan, Rel, conjuncts, function, join_type
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
    """``plan`` with every anti join null-aware: before ``on a = b``, after ``on (a = b) IS NOT FALSE``."""
    return transform(plan, _aware)


def _aware(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "join" or join_type(plan) != "left_anti":
        return plan
    (condition,) = plan.exprs
    if len(conjuncts(condition)) > 1:
        raise PlanError("a correlated NOT IN cannot be expressed in Substrait")
    return replace(plan, exprs=(function("is_not_false", (condition,)),))
