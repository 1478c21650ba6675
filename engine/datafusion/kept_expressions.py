"""Frames whose expressions DataFusion 55 leaves as they mean: casts in comparisons (see
``datafusion.substrait.lossy_cast_bug``), what it simplifies wrongly (``simplifier_bug``) and
conditions without columns above aggregates (``sunk_condition_bug``)."""

from __future__ import annotations

import re

from datafusion import DataFrame, SessionConfig, SessionContext
from datafusion.plan import LogicalPlan

from blendfusion.datafusion.error_gate import is_error
from blendfusion.datafusion.sort_keys import is_row_change
from blendfusion.planner.ir.nodes import Plan

_MAY_CHANGE = re.compile(r"CAST\(| IN \(\[|BIT_XOR|\(- |regexp_like\(| ~\*? | OR | != |Filter: ")


def may_change(text: str) -> bool:
    """Whether DataFusion may change what a logical plan, of which this is the text, means."""
    if not _MAY_CHANGE.search(text):
        return False
    from blendfusion.datafusion.substrait.lossy_cast_bug import may_lose_casts

    return may_lose_casts(text) or _may_change_conditions(text)


def _may_change_conditions(text: str) -> bool:
    from blendfusion.datafusion.substrait.simplifier_bug import may_simplify
    from blendfusion.datafusion.substrait.sunk_condition_bug import may_sink

    return may_simplify(text) or may_sink(text)


def with_kept_expressions(context: SessionContext, frame: DataFrame) -> DataFrame:
    """``frame``, or a frame of the same rows that keeps such expressions. A plan that Substrait
    cannot carry stays as it is."""
    plan = frame.logical_plan()
    text = plan.display_indent()
    if not may_change(text) or is_row_change(plan):
        return frame
    from blendfusion.datafusion.substrait.lossy_cast_bug import may_lose_casts

    schemas = plan.display_indent_schema() if may_lose_casts(text) else ""
    casts = "Decimal" in schemas or "TRY_CAST(" in schemas
    if not (casts or _may_change_conditions(text)):
        return frame
    made = _carry(context, plan, schemas if casts else "")
    if made is None and not casts:
        made = _carry(context, _analyze(plan), "")
    return made if made is not None and made.schema() == frame.schema() else frame


def _carry(context: SessionContext, plan: LogicalPlan, schemas: str) -> DataFrame | None:
    """A frame of a plan with all such expressions hidden; None for a plan without any, and for one
    that Substrait does not carry."""
    from blendfusion.datafusion.bridge import through_substrait
    from blendfusion.datafusion.substrait.write import write
    from blendfusion.datafusion.substrait_io import frame_of

    try:
        root = through_substrait(context, plan, optimized=False)
        kept = _keep(root.plan, schemas)
        if kept == root.plan:
            return None
        return frame_of(context, write(kept, {}, root.names, calls=True))
    except BaseException as problem:  # DataFusion panics at grouping sets with equal keys
        if not is_error(problem):
            raise
        return None


def _analyze(plan: LogicalPlan) -> LogicalPlan:
    """``plan`` with the types that its expressions have, in which NULL has one, too: Substrait
    carries no others."""
    context = SessionContext(SessionConfig().set("datafusion.optimizer.max_passes", "0"))
    frame = SessionContext.create_dataframe_from_logical_plan(context, plan)
    return frame.optimized_logical_plan()


def _keep(plan: Plan, schemas: str) -> Plan:
    """``plan`` with all such expressions hidden; casts only for the text of its ``schemas``."""
    from blendfusion.datafusion.substrait.lossy_cast_bug import has_decimals, with_hidden_casts
    from blendfusion.datafusion.substrait.simplifier_bug import with_hidden_parts
    from blendfusion.datafusion.substrait.sunk_condition_bug import with_barriers

    if schemas:
        plan = with_hidden_casts(plan, decimals=has_decimals(schemas))
    return with_barriers(with_hidden_parts(plan))
