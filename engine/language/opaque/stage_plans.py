"""Stages the plan of a frame with calls, as a whole or in parts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from datafusion import DataFrame
from datafusion.plan import LogicalPlan

from blendfusion.datafusion.bridge import through_substrait
from blendfusion.errors import PlanError
from blendfusion.language.doubts.constant_conditions import noting
from blendfusion.language.doubts.plan_warnings import warn_of_doubts
from blendfusion.language.opaque.nested_stages import chain
from blendfusion.language.opaque.prepared_frame import PreparedFrame
from blendfusion.language.opaque.rewrite import remake, twin
from blendfusion.language.query_text.window_filters import filters_as_cases, groups_as_rows
from blendfusion.planner.driver import reason, rewrite
from blendfusion.planner.initial_order import inputs_first
from blendfusion.planner.needs.failing_rows import failing_rows_first
from blendfusion.planner.stages.split import cut_stages
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.call_registry import calls_in

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame


def staged_plan(
    frame: BaseFrame,
    calls: tuple[Call, ...],
    plan: LogicalPlan,
    query: str,
    *,
    parts: bool,
    careful: bool = False,
) -> PreparedFrame:
    """How ``frame`` runs, whose optimized ``plan`` has ``calls``; plain, with the reason, where it
    has no stages. ``careful``: rows on which an expression may fail are asked first."""
    stage = partial(_stage, frame, calls, careful=careful)
    try:
        return stage(plan, query)
    except PlanError as problem:
        why = reason(problem)
    if "GROUPS BETWEEN" in plan.display_indent():
        with suppress(PlanError):
            return _with_frames_of_groups(frame, stage, query)
    try:
        cut = twin(frame, parts=parts)
        prepared = stage(DataFrame.optimized_logical_plan(cut.frame), query)
    except PlanError:
        return PreparedFrame(calls, reason=why)
    cut.open()
    if cut.above and prepared.staged is not None:
        stages, fed = chain(cut.above, prepared.staged)
        prepared = replace(prepared, staged=stages, fed=fed)
    return replace(prepared, leaves=cut.leaves)


def _with_frames_of_groups(
    frame: BaseFrame, stage: Callable[..., PreparedFrame], query: str
) -> PreparedFrame:
    """The staged plan of a frame with windows of GROUPS, whose shape is that of the same windows of
    ROWS. Raises PlanError if there is none."""
    try:
        made, rows = (remake(frame, change) for change in (filters_as_cases, _with_cases_and_rows))
        plan, carrier = map(DataFrame.optimized_logical_plan, (made, rows))
    except Exception as problem:  # a text that does not work so
        raise PlanError(str(problem)) from problem
    return stage(plan, query, carrier)


def _with_cases_and_rows(sql: str) -> str:
    return groups_as_rows(filters_as_cases(sql))


def _stage(
    frame: BaseFrame,
    calls: tuple[Call, ...],
    plan: LogicalPlan,
    query: str,
    carrier: LogicalPlan | None = None,
    *,
    careful: bool,
) -> PreparedFrame:
    """The staged plan of ``plan``, to which DataFusion optimised ``query``. Raises PlanError if
    there is none."""
    engine = frame.engine
    root = through_substrait(engine.tables, plan, carrier)
    if careful:
        root = replace(root, plan=failing_rows_first(root.plan))
    written = [call.name for line in inputs_first(query) for call in calls_in(line)]
    doubts: list[str] = []
    rewritten = rewrite(
        root,
        off=engine.plans.rules_off,
        similar_first_pays=engine.plans.similar_first_pays,
        written=written,
        expected=engine.plans.expectations,
        outcomes=noting(engine.plans.outcomes, doubts.append),
        planning_ms=engine.options.planning_ms,
    )
    warn_of_doubts(doubts, engine.plans.warnings)
    found = cut_stages(rewritten.root)
    return PreparedFrame(calls, found, rewritten.rewrites, unfinished=rewritten.unfinished)
