"""Makes an outer join an inner one where nothing above keeps its rows without a partner.

before: ``(l left join r on llm(l.x) = r.c) join s on r.k = s.k``, or ``filter llm(r.y)`` above it
after:  ``(l join r on llm(l.x) = r.c) join s on r.k = s.k``
safe:   in a row without a partner the other side is NULL, so that the condition above is not true.
        DataFusion does the same below filters that need no model. An inner join may be reordered,
        and drops rows on both sides.
source: Galindo-Legaria and Rosenthal 1997, outer join simplification
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import repeat

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import filter_rows, project
from blendfusion.planner.ir.joins import is_union_all, join_plans, join_type
from blendfusion.planner.ir.nodes import (
    Expr,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    fields,
    has_window,
    inline,
    is_volatile,
    needs_model,
    shift,
    side_of,
    through_projection,
)
from blendfusion.planner.ir.null_values import UNKNOWN, rejects
from blendfusion.planner.ir.traversal import fold

_LEFT_STAYS = ("left", "outer")
_RIGHT_STAYS = ("right", "outer")
_TYPES = {(True, True): "outer", (True, False): "left", (False, True): "right"}
"""The types of a join by whether the rows without a partner of each side stay."""


def inner_joins(plan: Plan) -> Plan:
    """The whole plan. Each join is read with the conditions that its rows must meet above."""
    outer: set[int] = set()

    def note(relation: Plan, below: Sequence[bool]) -> bool:
        found = any(below)
        if isinstance(relation, Rel) and relation.kind == "join":
            found = found or join_type(relation) in (*_LEFT_STAYS, *_RIGHT_STAYS)
        if found:
            outer.add(id(relation))
        return found

    return _under(plan, (), outer) if fold(plan, note) else plan


def _under(plan: Plan, terms: Sequence[Expr], outer: Container[int]) -> Plan:
    """``plan``, of whose rows only those matter for which all terms are true. ``outer``: the
    identities of relations with an outer join."""
    if not isinstance(plan, Rel) or id(plan) not in outer:
        return plan
    if plan.kind in ("join", "cross"):
        return _join(plan, terms, outer)
    below: list[Sequence[Expr]] = [()] * len(plan.inputs)
    if plan.kind == "filter":
        below = [(*terms, *conjuncts(plan.exprs[0]))]
    elif plan.kind == "sort":
        below = [terms]
    elif plan.kind == "project" and not any(map(has_window, plan.exprs)):
        below = [[_over(term, plan.exprs) for term in terms]]
    elif plan.kind == "aggregate":
        agg = aggregation(plan)
        if agg.has_one_grouping:
            below = [[_over(term, agg.keys) for term in terms]]
    elif is_union_all(plan):
        below = [terms] * len(plan.inputs)
    inputs = list(map(_under, plan.inputs, below, repeat(outer)))
    if plan.kind == "filter" and inputs[0] is not plan.inputs[0]:
        return _sink_terms(conjuncts(plan.exprs[0]), inputs[0])
    return plan.with_inputs(*inputs)


def _sink_terms(terms: Sequence[Expr], source: Plan) -> Plan:
    """A filter over a join that became an inner one: its predicates with calls that read one side
    stand below it, where DataFusion has those of other inner joins."""
    columns, join = through_projection(source)
    if not isinstance(join, Rel) or join.kind != "join" or join_type(join) != "inner":
        return filter_rows(source, tuple(terms))
    if any(map(is_volatile, (*terms, *columns))):
        return filter_rows(source, tuple(terms))
    n_left = join.inputs[0].width
    own: dict[str | None, list[Expr]] = {"left": [], "right": [], None: []}
    for term in terms:
        moved = inline(term, columns)
        side = side_of(moved, n_left) if needs_model(moved) else None
        own[side].append(term if side is None else moved)
    left, right = join.inputs
    rights = tuple(shift(term, -n_left) for term in own["right"])
    sunk = join.with_inputs(filter_rows(left, tuple(own["left"])), filter_rows(right, rights))
    return filter_rows(project(sunk, columns), tuple(own[None]))


def _over(term: Expr, columns: Sequence[Expr]) -> Expr:
    """The term over a relation that has these columns; those that it lacks are unknown."""
    return inline(term, dict.fromkeys(fields(term), UNKNOWN) | dict(enumerate(columns)))


def _join(plan: Rel, terms: Sequence[Expr], outer: Container[int]) -> Plan:
    left, right = plan.inputs
    kind = join_type(plan)
    on = [t for e in plan.exprs for t in conjuncts(e)]
    if kind in _LEFT_STAYS or kind in _RIGHT_STAYS:
        lefts, rights = range(left.width), range(left.width, left.width + right.width)
        stays = (
            kind in _LEFT_STAYS and not any(rejects(t, rights) for t in terms),
            kind in _RIGHT_STAYS and not any(rejects(t, lefts) for t in terms),
        )
        new = _TYPES.get(stays, "inner")
        if new != kind:
            plan, kind = join_plans(left, right, tuple(on), new), new
    of_left: list[Expr] = []
    of_right: list[Expr] = []
    if kind in ("inner", "left", "left_semi", "left_anti", "left_mark"):
        of_left += terms
    if kind in ("inner", "right"):
        of_right += terms
    if kind in ("inner", "right", "left_semi"):
        of_left += on
    if kind in ("inner", "left", "left_semi", "left_anti"):  # NULL in a key may change a mark
        of_right += on
    n_left = left.width
    inputs = [
        _under(left, [_over(term, all_fields(n_left)) for term in of_left], outer),
        _under(right, [_over(shift(t, -n_left), all_fields(right.width)) for t in of_right], outer),
    ]
    return plan.with_inputs(*inputs)
