"""A plan without calls that has all rows of a plan with calls, as far as its columns are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import boolean_literal, filter_rows, project
from blendfusion.planner.ir.joins import exchange_sides, is_union_all, join_plans, join_type
from blendfusion.planner.ir.necessary import ALWAYS, necessary
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    fields,
    has_window,
    is_key,
    literal_like,
    needs_model,
    once_a_plan,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.stages.join_partners import with_partner

_TURNED = {"right_semi": "left_semi", "right_anti": "left_anti"}
"""Joins with the columns of their right side, and the same with the sides exchanged."""


class Superset(NamedTuple):
    """``plan`` has the columns of the original; those that are not ``readable`` hold nothing.
    ``counted``: it has each row at least as often."""

    plan: Plan
    readable: frozenset[int]
    counted: bool = True


@once_a_plan
def superset(plan: Plan) -> Superset | None:
    """All rows of ``plan``, perhaps more, each perhaps another number of times, without a call;
    None if that is impossible."""
    if not asks_anything(plan):
        return Superset(plan, frozenset(range(plan.width)))
    if isinstance(plan, Block):
        return None if plan.has_limit else _project(plan.source, plan.select, plan.where)
    if not isinstance(plan, Rel):
        return None
    if plan.kind == "project":
        return None if any(map(has_window, plan.exprs)) else _project(plan.inputs[0], plan.exprs)
    if plan.kind == "filter":
        return _project(plan.inputs[0], all_fields(plan.width), conjuncts(plan.exprs[0]))
    if plan.kind in ("sort", "fetch"):
        return superset(plan.inputs[0])
    if plan.kind == "aggregate":
        agg = aggregation(plan)
        if not agg.has_one_grouping:
            return None
        blank = (boolean_literal(True),) * (plan.width - len(agg.keys))
        found = _project(plan.inputs[0], (*agg.keys, *blank))
        keys = frozenset(range(len(agg.keys)))
        return found and found._replace(readable=found.readable & keys)
    if is_union_all(plan):
        return _union(plan)
    return _join(plan) if plan.kind in ("join", "cross") else None


def _project(source: Plan, columns: Sequence[Expr], where: Sequence[Expr] = ()) -> Superset | None:
    below = superset(source)
    if below is None:
        return None
    readable = {i for i, e in enumerate(columns) if _is_read(e, below)}
    blank = boolean_literal(True)
    shown = tuple(e if i in readable else blank for i, e in enumerate(columns))
    implied = [c for term in where for c in conjuncts(necessary(term))]
    known = tuple(c for c in dict.fromkeys(implied) if c != ALWAYS and _is_read(c, below))
    plan = project(filter_rows(below.plan, known), shown)
    return Superset(plan, frozenset(readable), below.counted)


def _is_read(expr: Expr, below: Superset) -> bool:
    return not needs_model(expr) and fields(expr) <= below.readable


def _union(plan: Rel) -> Superset | None:
    found = [superset(p) for p in plan.inputs]
    known = [f for f in found if f is not None]
    if len(known) < len(found) or any(len(f.readable) < plan.width for f in known):
        return None
    counted = all(f.counted for f in known)
    return Superset(plan.with_inputs(*(f.plan for f in known)), known[0].readable, counted)


def _join(plan: Rel) -> Superset | None:
    kind = join_type(plan)
    n_left, n_right = (p.width for p in plan.inputs)
    if kind in _TURNED:
        around = tuple(exchange_sides(t, n_left, n_right) for e in plan.exprs for t in conjuncts(e))
        return superset(join_plans(plan.inputs[1], plan.inputs[0], around, _TURNED[kind]))
    left, right = map(superset, plan.inputs)
    if left is not None and kind == "left_mark":
        marked: tuple[Expr, ...] = (*all_fields(n_left), boolean_literal(True))
        return left._replace(plan=project(left.plan, marked))
    if left is None or kind not in ("inner", "left", "left_semi", "left_anti"):
        return None
    blank = boolean_literal(True)
    wide = kind in ("inner", "left")
    others = (blank,) * n_right if wide else ()
    columns: tuple[Expr, ...] = (*all_fields(n_left), *others)
    alone = Superset(project(left.plan, columns), left.readable, left.counted and not wide)
    terms = [t for e in plan.exprs for t in conjuncts(e) if not literal_like(t)]
    whole = all(fields(t) <= _readable(left, right, n_left) for t in terms) if right else False
    if kind in ("left", "left_anti"):
        exact = whole and right is not None and not asks_anything(plan.inputs[1])
        if not exact or right is None:
            return alone
        new = join_plans(left.plan, right.plan, tuple(terms), kind)
        readable = _readable(left, right, n_left) if wide else left.readable
        return Superset(new, readable, left.counted and right.counted)
    if right is None:
        return alone
    readable = _readable(left, right, n_left)
    known = tuple(t for t in terms if fields(t) <= readable and not needs_model(t))
    if any(is_key(t, n_left) for t in known):
        new = join_plans(left.plan, right.plan, known, kind)
        return Superset(new, readable if wide else left.readable, left.counted and right.counted)
    # Pairs without a key would be too many; whether there are any is enough.
    some = with_partner(left.plan, known, right.plan, "left_semi")
    return Superset(project(some, columns), left.readable, left.counted and not wide)


def _readable(left: Superset, right: Superset, n_left: int) -> frozenset[int]:
    return left.readable | {n_left + i for i in right.readable}
