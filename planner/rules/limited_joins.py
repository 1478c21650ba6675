"""Under a limit, compares the answers of pairs one by one instead of joining by them.

before: ``limit k`` over ``(block select l.*, f(l.x) AS a) join (block select r.*, f(r.x) AS b) on
        l.k = r.k AND a = b``
after:  ``limit k`` over ``block where f(l.x) = f(r.x)`` over ``l join r on l.k = r.k``
safe:   the same pairs. As the key of a hash join an answer is needed of every row; as a predicate
        over pairs only until there are enough of them. A key that needs no model must be left, or
        there were too many pairs."""

from __future__ import annotations

from blendfusion.planner.ir.joins import join_plans, join_type
from blendfusion.planner.ir.nodes import (
    Block,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    inline,
    is_key,
    is_volatile,
    may_move,
    needs_model,
    shift,
    through_projection,
)


def limited_joins(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "fetch":
        return plan
    columns, below = through_projection(plan.inputs[0])
    if not isinstance(below, Rel) or below.kind != "join" or join_type(below) != "inner":
        return plan
    block = _over_pairs(below)
    if block is None or any(map(is_volatile, columns)):
        return plan
    select = tuple(inline(e, block.select) for e in columns)
    return plan.with_inputs(Block(block.source, block.where, select))


def _over_pairs(join: Rel) -> Block | None:
    """The join as a block over the join of its sides' sources; None without answers as keys, or
    without another key."""
    left, right = map(_taken_apart, join.inputs)
    if left is None or right is None:
        return None
    width = left.source.width
    rights = tuple(shift(e, width) for e in right.select)
    select = (*left.select, *rights)
    terms = [inline(t, select) for e in join.exprs for t in conjuncts(e)]
    cheap = tuple(t for t in terms if not needs_model(t))
    model_terms = tuple(t for t in terms if needs_model(t))
    if not any(is_key(t, width) for t in model_terms) or not any(is_key(t, width) for t in cheap):
        return None
    where = (*left.where, *(shift(t, width) for t in right.where), *model_terms)
    return Block(join_plans(left.source, right.source, cheap), where, select)


def _taken_apart(side: Plan) -> Block | None:
    """A side as a block of row-wise work over its source; None if that must not move."""
    if not isinstance(side, Block):
        return Block(side, (), all_fields(side.width))
    return side if may_move(side) else None
