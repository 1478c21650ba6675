"""Gives a call that depends on a whole column the distinct values of that column.

before: ``project same(x)`` / ``aggregate by same(x)`` / ``filter p AND same(x) = 'a'``
after:  the same relation; the call's domain is ``distinct x`` over its input, or over ``filter p``
        of it, which becomes a stage before it; in a join, over the side that the call reads
safe:   that is what such a call means (docs/meaning.md): the values of its column are those of
        the rows that it stands beside, after the predicates that need no model; in a predicate
        over a join, of the side that it reads. Where DataFusion's plan does not tell which rows
        these are, the query is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from blendfusion.errors import PlanError
from blendfusion.planner.ir.aggregates import distinct
from blendfusion.planner.ir.builders import filter_rows
from blendfusion.planner.ir.joins import is_union_all
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    asks,
    conjuncts,
    is_volatile,
    needs_model,
    shift,
    side_of,
    substitute,
)


def whole_columns(plan: Plan) -> Plan:
    if is_union_all(plan):
        _check_branches(plan)
    if not isinstance(plan, Rel) or not any(_is_open(a) for e in plan.exprs for a in asks(e)):
        return plan
    if plan.kind in ("join", "cross"):
        place = _of_join(plan)
    else:
        source = plan.inputs[0]
        if plan.kind == "filter":
            terms = conjuncts(plan.exprs[0])
            source = filter_rows(
                source, tuple(t for t in terms if not needs_model(t) and not is_volatile(t))
            )
        place = partial(_values, source)
    return replace(plan, exprs=tuple(_with_domains(e, place) for e in plan.exprs))


def _check_branches(union: Plan) -> None:
    """A predicate above a union and one in its branches are the same plan, since DataFusion moves
    the former into the branches; their columns differ."""
    for branch in union.inputs:
        while isinstance(branch, Rel) and branch.kind == "project":
            branch = branch.inputs[0]
        if isinstance(branch, Block) and any(map(_of_a_column, branch.where)):
            raise PlanError("a call over a whole column in a predicate below or above UNION ALL")


def _of_a_column(expr: Expr) -> bool:
    return any(a.call.ingredient.kind.whole_column for a in asks(expr))


def _is_open(ask: Ask) -> bool:
    return ask.call.ingredient.kind.whole_column and ask.domain is None


def _with_domains(expr: Expr, place: Callable[[Expr], Plan]) -> Expr:
    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Ask) or not _is_open(part):
            return None
        (arg,) = (_with_domains(a, place) for a in part.args)
        return Ask(part.call, (arg,), place(arg))

    return substitute(expr, change)


def _of_join(plan: Rel) -> Callable[[Expr], Plan]:
    left, right = plan.inputs

    def place(arg: Expr) -> Plan:
        side = side_of(arg, left.width)
        if side is None:
            raise PlanError("a call over a whole column that reads both sides of a join")
        return _values(left, arg) if side == "left" else _values(right, shift(arg, -left.width))

    return place


def _values(source: Plan, arg: Expr) -> Plan:
    if needs_model(arg):
        return distinct(Block(source, (), (arg,)), Field(0))
    return distinct(source, arg)
