"""Frames whose casts DataFusion 55 leaves in comparisons: see
``datafusion.substrait.lossy_cast_bug``."""

from __future__ import annotations

from datafusion import DataFrame, SessionContext

from blendfusion.datafusion.sort_keys import is_row_change


def with_kept_casts(context: SessionContext, frame: DataFrame) -> DataFrame:
    """``frame``, or a frame of the same rows that keeps such casts. A plan that Substrait cannot
    carry stays as it is."""
    plan = frame.logical_plan()
    text = plan.display_indent()
    if "CAST(" not in text:
        return frame
    from blendfusion.datafusion.substrait.lossy_cast_bug import (
        has_decimals,
        may_lose_casts,
        with_hidden_casts,
    )

    if not may_lose_casts(text) or is_row_change(plan):
        return frame
    schemas = plan.display_indent_schema()
    if "Decimal" not in schemas and "TRY_CAST(" not in text:
        return frame
    from blendfusion.datafusion.bridge import through_substrait
    from blendfusion.datafusion.substrait.write import write
    from blendfusion.datafusion.substrait_io import frame_of

    try:
        root = through_substrait(context, plan, optimized=False)
        kept = with_hidden_casts(root.plan, decimals=has_decimals(schemas))
        if kept == root.plan:
            return frame
        made = frame_of(context, write(kept, {}, root.names, calls=True))
        return made if made.schema() == frame.schema() else frame
    except Exception:
        return frame
