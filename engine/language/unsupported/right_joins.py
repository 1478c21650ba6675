"""Frames without calls whose right joins keep their rows: see ``planner.substrait.right_join_bug``.

Such a query runs as it is planned by DataFusion, but for its right joins, which become left ones
on the way through Substrait. A query that Substrait cannot carry runs as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datafusion import DataFrame

from blendfusion.datafusion.bridge import through_substrait
from blendfusion.datafusion.substrait_io import frame_of
from blendfusion.planner.ir.traversal import transform
from blendfusion.planner.substrait.join_condition_bug import readable
from blendfusion.planner.substrait.right_join_bug import as_left_join
from blendfusion.planner.substrait.write import write

if TYPE_CHECKING:
    from blendfusion.frame import Frame

_MAY_BE_RIGHT = ("Right Join:", "Full Join:")


def keeping_rows(frame: Frame) -> DataFrame:
    """DataFusion's own frame of ``frame``, to be run by DataFusion alone."""
    plain = DataFrame(frame.df)
    if not any(join in plain.logical_plan().display_indent() for join in _MAY_BE_RIGHT):
        return plain
    try:
        plan = plain.optimized_logical_plan()
        if "Right Join:" not in plan.display_indent():
            return plain
        root = through_substrait(frame.session, plan)
        turned = transform(root.plan, lambda join: as_left_join(readable(join)), ("join",))
        made = frame_of(frame.session, write(turned, {}, root.names))
        return made if made.schema() == plain.schema() else plain
    except Exception:
        return plain
