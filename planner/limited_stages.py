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
    asks_for_a_row,
    has_at_most_their_rows,
    stages_in,
    stages_in_expressions,
    stages_needed_whole,
    stages_to_end,
)
from blendfusion.planner.plan import (
    Plan,
    Rel,
    Stored,
    asks_itself,
    may_move,
    through_projection,
)
from blendfusion.planner.stages import Stage, Staged
from blendfusion.planner.tree import expressions, folded


@dataclass(frozen=True, slots=True)
class Limited:
    """``stages``, in order, run in turn until the source of stage ``above`` has ``count`` rows, or they end."""

    above: int
    stages: tuple[int, ...]
    late: frozenset[int]
    """Those that read nothing until others of them have rows."""
    offset: int
    count: int
    """Of the limit, what is skipped and what is left."""
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
    _, fetch = through_projection(above.block.source)
    may_end = stages_to_end(fetch) - plan.whole - stages_in_expressions(expressions(above.block))
    others = [stage for stage in plan.stages if stage is not above]
    growing = {
        stage.number
        for stage in others
        if stage.number in may_end
        and may_move(stage.block)
        and asks_itself(stage.block)
        and not stages_to_end(through_projection(stage.block.source)[1])
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
    assert isinstance(fetch, Rel)
    offset, count = fetch_bounds(fetch)
    assert count is not None
    return Limited(
        above.number,
        tuple(sorted(growing)),
        frozenset(s.number for s in others if s.number in growing and growing & stages_in(s.block)),
        offset,
        count,
        multiplied=not has_at_most_their_rows(fetch.inputs[0]),
    )


def _read(plan: Plan, below: Sequence[set[int]]) -> set[int]:
    """The stages whose rows ``plan`` wants, and not only to know whether there is one."""
    if isinstance(plan, Stored):
        return {plan.stage}
    own = stages_in_expressions(expressions(plan))
    if not asks_for_a_row(plan):
        return own.union(*below)
    return own | below[0] | stages_needed_whole(plan.inputs[1].inputs[0])
