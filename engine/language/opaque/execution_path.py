"""Prepares a frame: by stages, as a whole or in parts, or plain as DataFusion runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datafusion import DataFrame
from datafusion.plan import LogicalPlan

from blendfusion.datafusion.error_gate import is_foreign
from blendfusion.datafusion.error_translation import translate_error
from blendfusion.datafusion.kept_expressions import with_kept_expressions
from blendfusion.errors import BlendFusionError
from blendfusion.language.opaque.prepared_frame import PreparedFrame
from blendfusion.language.opaque.provenance import parameter_texts, place_error_in
from blendfusion.udfs.declare.call_registry import calls_in, readable

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame


def prepare(frame: BaseFrame, *, parts: bool, careful: bool = False) -> PreparedFrame:
    """A plan of ``frame``; ``parts``: parts of the query may be staged separately; ``careful``:
    rows on which an expression may fail are asked first."""
    query = frame.logical_plan().display_indent()
    if not calls_in(query):
        return (
            PreparedFrame()
        )  # most frames of a session have no calls, and are not optimized twice
    plan = optimize(frame)
    text = plan.display_indent()
    calls = tuple(calls_in(text))
    if not calls:
        return PreparedFrame()
    if not frame.engine.options.planner:
        return PreparedFrame(calls, reason="the option planner is off")
    frame.engine.calls.know(frame.engine, text)  # what is read back names their functions
    from blendfusion.language.opaque.stage_plans import staged_plan

    return staged_plan(frame, calls, plan, query, parts=parts, careful=careful)


def careful_plan(frame: BaseFrame, problem: Exception) -> PreparedFrame | None:
    """The plan of ``frame``, whose own failed, in which rows on which an expression may fail are
    asked first, if it has stages; None if it is the same, or DataFusion has no such ``problem``."""
    if not is_foreign(problem) or frame.prepared.staged is None:
        return None
    careful = frame.prepare(parts=True, careful=True)
    return None if careful.staged == frame.prepared.staged else careful


def optimize(frame: BaseFrame) -> LogicalPlan:
    """DataFusion's plan of ``frame``. Raises QueryError, since its optimizer evaluates
    constants."""
    try:
        kept = with_kept_expressions(frame.engine.tables, DataFrame(frame.df))
        return kept.optimized_logical_plan()
    except Exception as problem:
        plan = readable(frame.logical_plan().display_indent())
        raise understood_error(frame, problem, plan) from problem


def understood_error(frame: BaseFrame, problem: Exception, text: str = "") -> BlendFusionError:
    """The error for an exception of DataFusion about ``frame``, or about ``text`` of it."""
    engine = frame.engine
    error = translate_error(
        problem, engine.tables, text, engine.options.redaction, parameter_texts(frame)
    )
    return place_error_in(frame, error)
