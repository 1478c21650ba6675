"""Takes the sort out of a stage that workers can run: the session sorts their rows afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from blendfusion.planner.ir.nodes import (
    Block,
    Field,
    Rel,
    StoredRows,
    all_fields,
    inline,
    through_projection,
)
from blendfusion.planner.stages.split import Stage, StagedPlan
from blendfusion.services.cluster.divide import Whole


def spread(plan: StagedPlan, check: Callable[[Block], object]) -> StagedPlan:
    """The plan with such a sort of its last stage as a stage of its own. ``check`` raises Whole for
    a block that workers cannot run.

    before: ``block over sort by k over scan``
    after:  ``block that also computes k over scan``, and ``sort by k`` over its stored rows
    """
    last = plan.last
    unsorted = _take_sort_out(last.block)
    if unsorted is None:
        return plan
    block, sort = unsorted
    try:
        check(block)
    except Whole:
        return plan
    width = block.width - len(sort.exprs)
    above = replace(
        sort,
        inputs=(StoredRows(last.number, block.width),),
        exprs=tuple(Field(width + i) for i in range(len(sort.exprs))),
        width=block.width,
    )
    stages = (
        Stage(last.number, block),
        Stage(last.number + 1, Block(above, (), all_fields(width))),
    )
    return replace(plan, stages=(*plan.stages[:-1], *stages))


def _take_sort_out(block: Block) -> tuple[Block, Rel] | None:
    """A block without the sort at the top of its source, which computes the keys; and that sort."""
    columns, sort = through_projection(block.source)
    if not isinstance(sort, Rel) or sort.kind != "sort" or block.has_limit:
        return None
    select = (*(inline(e, columns) for e in block.select), *sort.exprs)
    where = tuple(inline(e, columns) for e in block.where)
    return Block(sort.inputs[0], where, select), sort
