"""Reduces a block below a join to the rows with a partner, so that dropped rows are not asked.

before: ``t semi join (block(u) where llm(u.x)) on t.k = u.k``; also below an aggregate by ``u.k``,
        on the padded side of an outer join, or with the call in the join's condition
after:  the block over ``u semi join t on u.k = t.k``; without a condition to go by, over ``u`` if
        ``t`` has any row at all: of two sides that ask, the left is asked up to its first row, then
        the right, and the rest of the left if the right has any row
safe:   rows without a partner appear in no result of such a join. The partner may hold more rows
        than the join will see, never fewer: limits are left out of it, and it must give the same
        rows each time, since it runs a second time here.
also:   if the other side turns out to have no row, no block of this side asks anything.
source: semi-join reduction, Bernstein and Chiu 1981
"""

from __future__ import annotations

from blendfusion.planner.ir.builders import boolean_literal
from blendfusion.planner.ir.joins import exchange_sides, is_join, join_type
from blendfusion.planner.ir.nodes import (
    Block,
    Plan,
    is_volatile_block,
    may_move,
    needs_model,
    once_a_plan,
    relations_below,
    through_projection,
)
from blendfusion.planner.ir.traversal import asks_anything, transform
from blendfusion.planner.stages.join_partners import small, steady
from blendfusion.planner.stages.reduced_sides import (
    DROPS_LEFT,
    DROPS_RIGHT,
    join_terms,
    keep_partners,
    known_terms,
    reduce_side,
)
from blendfusion.planner.stages.supersets import superset


def semi_join_reduction(plan: Plan) -> Plan:
    if not is_join(plan):
        return plan
    left, right = plan.inputs
    kind = join_type(plan)
    terms = join_terms(plan)
    new_left, new_right = left, right
    bare = superset(right) if kind in DROPS_LEFT and asks_anything(left) else None
    if bare is not None:
        new_left = reduce_side(left, known_terms(terms, left.width, bare), bare.plan)
    if kind in DROPS_RIGHT:
        row = None if terms or kind not in DROPS_LEFT else _any_row(new_left)
        # The unreduced left side runs anyway, and the rows that it drops have no partner either.
        around = [exchange_sides(t, left.width, right.width) for t in terms]
        partner = row or new_left
        new_right = reduce_side(right, around, partner)
        if new_right is right:
            new_right = reduce_side(right, around, partner, deep=True)
        if len(_asking_blocks(right)) > (new_right is not right):
            new_right = _or_none(new_right, partner)
        if row is not None and asks_anything(right):
            new_left = reduce_side(left, (), new_right)
    return plan.with_inputs(new_left, new_right)


def _any_row(side: Plan) -> Block | None:
    """A block with one row if ``side`` has any, which asks no more than up to that row; None of
    other relations than a block that drops rows."""
    _, block = through_projection(side)
    if not isinstance(block, Block) or not any(map(needs_model, block.where)):
        return None
    if not may_move(block):
        return None
    return Block(block.source, block.where, (boolean_literal(True),), count=1)


@once_a_plan
def _asking_blocks(plan: Plan) -> frozenset[Block]:
    """The blocks with calls in ``plan``."""
    if not asks_anything(plan):
        return frozenset()
    own = {plan} if isinstance(plan, Block) and plan.calls_here else ()
    return frozenset(own).union(*map(_asking_blocks, relations_below(plan)))


def _or_none(side: Plan, other: Plan) -> Plan:
    """``side`` whose blocks ask nothing if ``other``, which asks, has no row at all; for those that
    read no row of it already. A block that several relations read stays one."""
    blocks = _asking_blocks(other)
    partner = small(steady(other)) if blocks else None
    if partner is None:
        return side
    of_partner = partner

    def empty_block(part: Plan) -> Plan:
        if not isinstance(part, Block) or not part.calls_here or is_volatile_block(part):
            return part
        if not blocks.isdisjoint(_asking_blocks(part)):
            return part
        return part.with_inputs(keep_partners(part.source, (), of_partner))

    return transform(side, empty_block)
