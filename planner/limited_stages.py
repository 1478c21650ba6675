"""Stages that run no further than a limit above them needs.

``limit k`` over ``(block) join (block) on f(l.x) = g(r.y)``: a hash join takes its keys from whole columns, so each side is a
stage before it. But no pair of a join is lost where a side gets more rows, as none is below a filter, DISTINCT or IN. So the
stages may give some rows each, in turn, until what stands above them has ``k`` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blendfusion.planner.build import fetch_bounds
from blendfusion.planner.growth import (
    MOST_WANTED,
    asks_for_a_row,
    has_at_most_their_rows,
    stages_in,
    stages_in_expressions,
    stages_needed_whole,
    stages_to_end,
)
from blendfusion.planner.plan import (
    Block,
    Plan,
    Rel,
    Stored,
    asks,
    asks_itself,
    may_move,
    through_projection,
)
from blendfusion.planner.stages import Stage, Staged
from blendfusion.planner.tree import expressions, folded


@dataclass(frozen=True, slots=True)
class Limited:
    """``stages``, in order, run in turn until stage ``above`` has the rows of its limit, or they end."""

    above: int
    stages: tuple[int, ...]
    late: frozenset[int]
    """Those that read nothing until others of them have rows."""
    offset: int
    count: int
    """Of the limit, what is skipped and what is left."""
    own: bool
    """The limit is that of stage ``above`` itself, after its predicates; else one that stands in its source."""
    multiplied: bool
    """Whether there may be more rows above a stage than it has."""


def limited_stages(plan: Staged) -> dict[int, Limited]:
    """Which stages of ``plan`` limits may end early, by the number of each of them."""
    found: dict[int, Limited] = {}
    for stage in plan.stages:
        limited = _ended_by(stage, plan)
        if limited is not None:
            found |= dict.fromkeys(limited.stages, limited)
    return found


def _ended_by(above: Stage, plan: Staged) -> Limited | None:
    block = above.block
    limit = _limit_of(block)
    if limit is None:
        return None
    below, offset, count = limit
    may_end = stages_in(below) - stages_needed_whole(below)
    may_end -= plan.whole | stages_in_expressions(expressions(block))
    others = [stage for stage in plan.stages if stage is not above]
    growing = {
        stage.number
        for stage in others
        if stage.number in may_end
        and may_move(stage.block)
        and asks_itself(stage.block)
        and _limit_of(stage.block) is None
    }
    while True:
        read = (
            folded(s.block, _read) if s.number in growing else stages_in(s.block) for s in others
        )
        left = growing.difference(*read)
        if left == growing:
            break
        growing = left
    if not growing:
        return None
    return Limited(
        above.number,
        tuple(sorted(growing)),
        frozenset(s.number for s in others if s.number in growing and growing & stages_in(s.block)),
        offset,
        count,
        own=below is block.source,
        multiplied=not has_at_most_their_rows(below),
    )


def _limit_of(block: Block) -> tuple[Plan, int, int] | None:
    """(what is limited, offset, count) of a limit at the top of what a block reads, or of its own; None if there is
    none that could end anything early."""
    _, fetch = through_projection(block.source)
    if stages_to_end(fetch):
        assert isinstance(fetch, Rel)
        offset, count = fetch_bounds(fetch)
        return None if count is None else (fetch.inputs[0], offset, count)
    again = not any(a.call.ingredient.run or a.domain for e in block.where for a in asks(e))
    if block.count is None or block.offset + block.count > MOST_WANTED or not again:
        return None
    return block.source, block.offset, block.count


def _read(plan: Plan, below: Sequence[set[int]]) -> set[int]:
    """The stages whose rows ``plan`` wants, and not only to know whether there is one."""
    if isinstance(plan, Stored):
        return {plan.stage}
    own = stages_in_expressions(expressions(plan))
    if not asks_for_a_row(plan):
        return own.union(*below)
    return own | below[0] | stages_needed_whole(plan.inputs[1].inputs[0])
