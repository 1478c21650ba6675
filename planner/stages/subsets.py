"""A plan without calls whose rows a plan with calls has for sure, whatever the answers are."""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.planner.ir.aggregates import is_distinct
from blendfusion.planner.ir.builders import filter_rows, function, project
from blendfusion.planner.ir.joins import is_union_all, join_plans, join_type, union_all
from blendfusion.planner.ir.necessary import ALWAYS, NEVER, any_of, to_fail
from blendfusion.planner.ir.nodes import Block, Expr, Plan, Rel, conjuncts, has_window, needs_model
from blendfusion.planner.ir.traversal import asks_anything


def subset(plan: Plan) -> Plan | None:
    """Rows of ``plan``, each perhaps another number of times, without a call; None if none is known
    to be there."""
    if not asks_anything(plan):
        return plan
    if isinstance(plan, Block):
        if plan.has_limit or any(map(needs_model, plan.select)):
            return None
        below = _certain(plan.source, plan.where)
        return None if below is None else project(below, plan.select)
    if not isinstance(plan, Rel):
        return None
    if plan.kind == "filter":
        return _certain(plan.inputs[0], conjuncts(plan.exprs[0]))
    if is_union_all(plan):
        some = [rows for branch in plan.inputs if (rows := subset(branch)) is not None]
        return union_all(some) if len(some) > 1 else next(iter(some), None)
    if plan.kind in ("join", "cross") and join_type(plan) in ("inner", "left_semi"):
        terms = certain_terms([t for e in plan.exprs for t in conjuncts(e)])
        sides = _of_all(plan.inputs)
        if terms is None or sides is None:
            return None
        return join_plans(sides[0], sides[1], tuple(terms), join_type(plan))
    if any(needs_model(e) or has_window(e) for e in plan.exprs):
        return None
    if plan.kind not in ("project", "sort") and not is_distinct(plan):
        return None
    known = _of_all(plan.inputs)
    return None if known is None else plan.with_inputs(*known)


def _of_all(plans: Sequence[Plan]) -> list[Plan] | None:
    known = [rows for plan in plans if (rows := subset(plan)) is not None]
    return known if len(known) == len(plans) else None


def _certain(source: Plan, where: Sequence[Expr]) -> Plan | None:
    """The rows of ``source`` on which all predicates are true, whatever the answers are."""
    terms = certain_terms(where)
    below = None if terms is None else subset(source)
    return None if below is None else filter_rows(below, tuple(terms or ()))


def certain_terms(where: Sequence[Expr]) -> list[Expr] | None:
    """Conditions without calls under which all predicates are true; None if no such condition is
    known."""
    cheap = [term for term in where if not needs_model(term)]
    fails = any_of([to_fail(term) for term in where if needs_model(term)])
    if fails == ALWAYS:
        return None
    return cheap if fails == NEVER else [*cheap, function("is_not_true", (fails,))]
