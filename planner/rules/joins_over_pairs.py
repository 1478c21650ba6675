"""Decides a join by calls about pairs for the distinct pairs first, where pairs are not rows.

before: ``l semi join r on llm(l.x, r.y) AND l.k = r.k``; also anti, mark and outer joins
after:  ``l semi join d on l.x = d.x AND l.k = d.k``, where ``d`` is ``distinct x, k`` over a block
        ``where llm(x, y)`` over ``l join r on l.k = r.k``
after:  for outer joins, ``(l left join d on l.x = d.x AND l.k = d.k) left join r on d.y = r.y AND
        d.k = r.k``, where ``d`` has the columns of both sides
safe:   rows with equal values in the condition match the same rows; keys compare NULL with NULL.
        Both sides run a second time, so they must give the same rows each time, or more.
"""

from __future__ import annotations

from blendfusion.planner.ir.aggregates import distinct
from blendfusion.planner.ir.builders import boolean_literal, filter_rows, function, project
from blendfusion.planner.ir.joins import join_plans, join_type
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    asks,
    conjuncts,
    fields,
    inline,
    is_volatile,
    needs_model,
    side_of,
)
from blendfusion.planner.stages.join_partners import repeatable

_OF_LEFT = ("left_semi", "left_anti", "left_mark")
"""Joins that have the rows of their left side, each at most once."""


def joins_over_pairs(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "join" or join_type(plan) == "inner":
        return plan
    width = plan.inputs[0].width
    terms = tuple(t for e in plan.exprs for t in conjuncts(e))
    pairs = [a for t in terms for a in asks(t) if fields(a) and side_of(a, width) is None]
    if not pairs or any(map(is_volatile, terms)):
        return plan
    left, right = map(repeatable, plan.inputs)
    if left is None or right is None:
        return plan
    return _decide_pairs(plan, left, right, terms)


def _decide_pairs(plan: Rel, left: Plan, right: Plan, terms: tuple[Expr, ...]) -> Plan:
    """The join over the distinct pairs that meet the condition; ``left`` and ``right`` are its
    sides for a second run."""
    kind, (own, other) = join_type(plan), plan.inputs
    alone: tuple[Expr, ...] = ()
    if kind in _OF_LEFT:
        alone = tuple(t for t in terms if not needs_model(t) and side_of(t, own.width) == "left")
        left, terms = filter_rows(left, alone), tuple(t for t in terms if t not in alone)
    read = sorted(set().union(*map(fields, terms)))
    lefts = [i for i in read if i < own.width]
    rights = [i - own.width for i in read if i >= own.width]
    at = {i: Field(n) for n, i in enumerate(read)}
    moved = [inline(t, at) for t in terms]
    both = join_plans(
        distinct(left, *map(Field, lefts)),
        distinct(right, *map(Field, rights)),
        tuple(t for t in moved if not needs_model(t)),
    )
    pairs = Block(both, tuple(t for t in moved if needs_model(t)), all_fields(len(read)))
    if kind in _OF_LEFT:
        found = distinct(pairs, *all_fields(len(lefts)))
        keys = tuple(_same(i, own.width + n) for n, i in enumerate(lefts))
        return join_plans(own, found, (*keys, *alone), kind)
    if kind in ("right_semi", "right_anti"):
        found = distinct(pairs, *(Field(len(lefts) + n) for n in range(len(rights))))
        keys = tuple(_same(n, len(rights) + i) for n, i in enumerate(rights))
        return join_plans(found, other, keys, kind)
    marked = project(pairs, (*all_fields(len(read)), boolean_literal(True)))
    found = distinct(marked, *all_fields(len(read) + 1))
    keys = tuple(_same(i, own.width + n) for n, i in enumerate(lefts))
    near = join_plans(own, found, keys, "inner" if kind == "right" else "left")
    mark = Field(near.width - 1)
    beside = own.width + len(lefts)
    others = tuple(_same(beside + n, near.width + i) for n, i in enumerate(rights))
    far = join_plans(near, other, (mark, *others), kind)
    kept = (*range(own.width), *range(near.width, far.width))
    return project(far, tuple(map(Field, kept)))


def _same(a: int, b: int) -> Expr:
    return function("is_not_distinct_from", (Field(a), Field(b)))
