"""Stages that run no further than a limit above them needs.

``limit k`` over ``(block) join (block) on f(l.x) = g(r.y)``: a hash join takes its keys from whole columns, so each side is a
stage before it. But no pair of a join is lost where a side gets more rows, as none is below a filter, DISTINCT or IN. So the
stages may give some rows each, in turn, until what stands above them has ``k`` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blendfusion.planner.ir.builders import fetch_bounds
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Plan,
    Rel,
    Stored,
    asks,
    asks_itself,
    may_move,
    through_projection,
)
from blendfusion.planner.ir.traversal import expressions, folded
from blendfusion.planner.stages.monotonicity import (
    MOST_WANTED,
    asks_for_a_row,
    has_at_most_their_rows,
    stages_in,
    stages_in_expressions,
    stages_needed_whole,
    stages_to_end,
)
from blendfusion.planner.stages.split import Stage, Staged


@dataclass(frozen=True, slots=True)
class Limited:
    """``stages``, in order, run in turn until stage ``above`` has the rows of its limit, or they end."""

    above: int
    stages: tuple[int, ...]
    late: frozenset[int]
    """Those that read nothing until others of them have rows, and then all."""
    anew: frozenset[int]
    """Those that read more when others of them have more rows, and begin anew."""
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
    whole = plan.whole | stages_needed_whole(below) | stages_in_expressions(expressions(block))
    others = [stage for stage in plan.stages if stage is not above]
    growing = {
        stage.number
        for stage in others
        if stage.number not in whole
        and may_move(stage.block)
        and asks_itself(stage.block)
        and _limit_of(stage.block) is None
    }
    while True:
        read = (
            _needed_whole(s.block) if s.number in growing else stages_in(s.block) for s in others
        )
        left = growing.difference(*read) & stages_in(below).union(
            *(stages_in(s.block) for s in others if s.number in growing)
        )
        if left == growing:
            break
        growing = left
    if not growing:
        return None
    blocks = {s.number: s.block for s in others if s.number in growing}
    anew = {number for number, b in blocks.items() if growing & _rows_of(b)}
    late = {number for number, b in blocks.items() if growing & stages_in(b)} - anew
    return Limited(
        above.number,
        tuple(sorted(growing)),
        frozenset(late),
        frozenset(anew),
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
    if (
        block.count is None
        or block.offset + block.count > MOST_WANTED
        or not _run_again(block.where)
    ):
        return None
    return block.source, block.offset, block.count


def _run_again(exprs: Sequence[Expr]) -> bool:
    """Whether calls may see rows more than once: what they asked they know, but other people's functions would run again,
    and what chooses from the rows of a plan would count what it chose twice."""
    return not any(a.call.ingredient.run or a.domain for e in exprs for a in asks(e))


def _needed_whole(block: Block) -> set[int]:
    """The stages of which a block, some of whose rows are wanted, needs all rows."""
    if not _run_again(expressions(block)):
        return _rows_of(block)
    return stages_needed_whole(block.source) | stages_in_expressions(expressions(block))


def _rows_of(block: Block) -> set[int]:
    """The stages whose rows a block reads, and not only to know whether there is one."""
    return folded(block, _read)


def _read(plan: Plan, below: Sequence[set[int]]) -> set[int]:
    if isinstance(plan, Stored):
        return {plan.stage}
    own = stages_in_expressions(expressions(plan))
    if not asks_for_a_row(plan):
        return own.union(*below)
    return own | below[0] | stages_needed_whole(plan.inputs[1].inputs[0])
