"""Stages that run no further than a limit above them needs.

``limit k`` over ``(block) join (block) on f(l.x) = g(r.y)``: a hash join takes its keys from
complete columns, so each side is a stage before it. A join loses no pair when a side grows, and
neither does a filter, DISTINCT or IN. So the stages may produce some rows each, in turn, until the
plan above them has ``k`` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from blendfusion.planner.ir.builders import fetch_bounds, project
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Plan,
    Rel,
    StoredRows,
    asks,
    may_move,
    through_projection,
)
from blendfusion.planner.ir.traversal import expressions, fold
from blendfusion.planner.stages.monotonicity import (
    MOST_WANTED,
    asks_for_a_row,
    has_at_most_their_rows,
    stages_in,
    stages_in_expressions,
    stages_needed_whole,
    stages_to_end,
    with_partners,
)
from blendfusion.planner.stages.split import Stage, StagedPlan


@dataclass(frozen=True, slots=True)
class LimitedStages:
    """``stages``, in order, run in turn until stage ``above`` has the rows of its limit, or they
    end."""

    above: int
    stages: tuple[int, ...]
    late: frozenset[int]
    """Stages whose input is another interleaved stage; they start once it has produced rows, and
    then read all of them."""
    restarting: frozenset[int]
    """Stages that restart when an input stage grows."""
    offset: int
    count: int
    """The limit: rows to skip plus rows to return."""
    own: bool
    """Whether the limit belongs to stage ``above``, after its predicates, instead of its source."""
    multiplied: bool
    """Whether the plan above a stage may have more rows than the stage."""
    first: Plan | None = None
    """In place of the source of stage ``above``, what has the rows of it that come while the stages
    grow; if these are too few for the limit, the source itself has all, once they have ended."""


def limited_stages(plan: StagedPlan) -> dict[int, LimitedStages]:
    """The stages of ``plan`` that limits may end early, by stage number."""
    found: dict[int, LimitedStages] = {}
    for stage in plan.stages:
        limited = _ended_by(stage, plan)
        if limited is not None:
            found |= dict.fromkeys(limited.stages, limited)
    return found


def _ended_by(above: Stage, plan: StagedPlan) -> LimitedStages | None:
    block = above.block
    limit = _limit_of(block)
    if limit is None:
        return None
    found = _ended_below(above, plan, limit)
    columns, fetch = through_projection(block.source)
    if found is not None or limit[0] is block.source or not isinstance(fetch, Rel):
        return found
    pairs = with_partners(limit[0])
    found = None if pairs is limit[0] else _ended_below(above, plan, (pairs, *limit[1:]))
    first = project(fetch.with_inputs(pairs), columns)
    return None if found is None else replace(found, first=first)


def _ended_below(
    above: Stage, plan: StagedPlan, limit: tuple[Plan, int, int]
) -> LimitedStages | None:
    block, (below, offset, count) = above.block, limit
    whole = plan.whole | stages_needed_whole(below) | stages_in_expressions(expressions(block))
    others = [stage for stage in plan.stages if stage is not above]
    growing = {
        stage.number
        for stage in others
        if stage.number not in whole
        and may_move(stage.block)
        and stage.block.calls_here
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
    restarting = {number for number, b in blocks.items() if growing & _rows_of(b)}
    late = {number for number, b in blocks.items() if growing & stages_in(b)} - restarting
    return LimitedStages(
        above.number,
        tuple(sorted(growing)),
        frozenset(late),
        frozenset(restarting),
        offset,
        count,
        own=below is block.source,
        multiplied=not has_at_most_their_rows(below),
    )


def _limit_of(block: Block) -> tuple[Plan, int, int] | None:
    """(input, offset, count) of a limit at the top of a block's source, or of the block itself;
    None without a limit that could end anything early."""
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
    """Whether calls may see rows repeatedly. Answers are cached, but user-defined functions would
    run again, and a choice among the rows of a plan would be counted twice."""
    return not any(a.call.ingredient.kind.has_body or a.domain for e in exprs for a in asks(e))


def _needed_whole(block: Block) -> set[int]:
    """The stages of which a block needs all rows, even if only some of its own rows are needed."""
    if not _run_again(expressions(block)):
        return _rows_of(block)
    return stages_needed_whole(block.source) | stages_in_expressions(expressions(block))


def _rows_of(block: Block) -> set[int]:
    """The stages whose rows a block reads, except those tested for existence only."""
    return fold(block, _read)


def _read(plan: Plan, below: Sequence[set[int]]) -> set[int]:
    if isinstance(plan, StoredRows):
        return {plan.stage}
    own = stages_in_expressions(expressions(plan))
    if not asks_for_a_row(plan):
        return own.union(*below)
    return own | below[0] | stages_needed_whole(plan.inputs[1].inputs[0])
