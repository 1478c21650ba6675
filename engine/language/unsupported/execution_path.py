"""Prepares a frame: by stages, as a whole or in parts, or plain as DataFusion runs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from datafusion import DataFrame
from datafusion.plan import LogicalPlan

from blendfusion.datafusion.bridge import through_substrait
from blendfusion.datafusion.error_translation import understood
from blendfusion.errors import BlendFusionError, PlanError
from blendfusion.language.doubts.constant_conditions import noting
from blendfusion.language.doubts.plan_warnings import warn_of_doubts
from blendfusion.language.unsupported.nested_stages import NOTHING, StoredParts, chained
from blendfusion.language.unsupported.opaque_tables import Leaf
from blendfusion.language.unsupported.provenance import given, pointed
from blendfusion.language.unsupported.rewrite import twin
from blendfusion.planner.driver import Rewrite, reason, rewrite
from blendfusion.planner.initial_order import inputs_first
from blendfusion.planner.stages.split import Staged, staged
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.call_registry import calls_in, readable

if TYPE_CHECKING:
    from blendfusion.frame import Frame


@dataclass(frozen=True, slots=True)
class Prepared:
    """How a frame will run: ``staged`` by the planner, else plain, for a ``reason`` (if any)."""

    calls: tuple[Call, ...] = ()
    staged: Staged | None = None
    rewrites: tuple[Rewrite, ...] = ()
    reason: str | None = None
    unfinished: bool = False
    """Whether the planner's rules had too little time, and left the staged plan as it was."""
    leaves: tuple[Leaf, ...] = ()
    """The opaque tables that the staged plan reads; their names exist while these are held."""
    fed: StoredParts = NOTHING
    """The stages whose rows the opaque tables read."""

    @property
    def shape(self) -> Prepared:
        """A copy for display, which holds none of the tables that a run reads."""
        return replace(self, leaves=(), fed=NOTHING)


def prepare(frame: Frame, *, parts: bool) -> Prepared:
    """A plan of ``frame``; ``parts``: parts of the query may be staged separately."""
    query = frame.logical_plan().display_indent()
    if not calls_in(query):
        return Prepared()  # most frames of a session have no calls, and are not optimized twice
    plan = optimized(frame)
    text = plan.display_indent()
    calls = tuple(calls_in(text))
    if not calls:
        return Prepared()
    if not frame.session.options.planner:
        return Prepared(calls, reason="the option planner is off")
    frame.session.calls.know(frame.session, text)  # what is read back names their functions
    try:
        return _staged(frame, calls, plan, query)
    except PlanError as problem:
        why = reason(problem)
    try:
        cut = twin(frame, parts=parts)
        prepared = _staged(frame, calls, DataFrame.optimized_logical_plan(cut.frame), query)
    except PlanError:
        return Prepared(calls, reason=why)
    cut.open()
    if cut.above and prepared.staged is not None:
        stages, fed = chained(cut.above, prepared.staged)
        prepared = replace(prepared, staged=stages, fed=fed)
    return replace(prepared, leaves=cut.leaves)


def _staged(frame: Frame, calls: tuple[Call, ...], plan: LogicalPlan, query: str) -> Prepared:
    """The staged plan of ``plan``, to which DataFusion optimised ``query``. Raises PlanError if
    there is none."""
    root = through_substrait(frame.session, plan)
    written = [call.name for line in inputs_first(query) for call in calls_in(line)]
    doubts: list[str] = []
    rewritten = rewrite(
        root,
        off=frame.session.rules_off,
        similar_first_pays=frame.session.similar_first_pays,
        written=written,
        expected=frame.session.expectations,
        outcomes=noting(frame.session.answer_outcomes, doubts.append),
        planning_ms=frame.session.options.planning_ms,
    )
    warn_of_doubts(doubts, frame.session.plan_warnings)
    found = staged(rewritten.root)
    return Prepared(calls, found, rewritten.rewrites, unfinished=rewritten.unfinished)


def optimized(frame: Frame) -> LogicalPlan:
    """DataFusion's plan of ``frame``. Raises QueryError, since its optimizer evaluates
    constants."""
    try:
        return DataFrame.optimized_logical_plan(frame)
    except Exception as problem:
        plan = readable(frame.logical_plan().display_indent())
        raise understood_error(frame, problem, plan) from problem


def understood_error(frame: Frame, problem: Exception, text: str = "") -> BlendFusionError:
    """The error for an exception of DataFusion about ``frame``, or about ``text`` of it."""
    session = frame.session
    error = understood(problem, session, text, session.options.redaction, given(frame))
    return pointed(frame, error)
