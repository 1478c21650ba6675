"""The tables that a plan reads through views of the session.

Such a view reads the tables of the time when it was made, also when others have their names by now.
So what it reads is found in the plan, and not by names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from datafusion.plan import LogicalPlan

from blendfusion.datafusion.scans import scans_in

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame

_ALIAS = "SubqueryAlias: "


def aliases_in(text: str) -> set[str]:
    """The names of views, common tables and others that have an alias in the text of a plan."""
    lines = (line.lstrip() for line in text.splitlines())
    return {line.removeprefix(_ALIAS) for line in lines if line.startswith(_ALIAS)}


def scans_of(
    frame: BaseFrame, views: Collection[str]
) -> list[tuple[str | None, LogicalPlan]] | None:
    """The scans of a plan with subqueries, each with the outermost of the ``views`` through which
    it is read (None: through none). None where not all of them are found, or one asks."""
    calls = [call.name for call in frame.prepared.calls]
    for plan in (frame.logical_plan(), frame.optimized_logical_plan()):
        found = list(_leaves(plan, views, None))
        is_whole = len(found) == len(scans_in(plan))
        if is_whole and not any(name in leaf.display() for _, leaf in found for name in calls):
            return found
    return None


def _leaves(
    plan: LogicalPlan, views: Collection[str], view: str | None
) -> Iterator[tuple[str | None, LogicalPlan]]:
    text, inputs = plan.display(), plan.inputs()
    if view is None and text.startswith(_ALIAS) and text.removeprefix(_ALIAS) in views:
        view = text.removeprefix(_ALIAS)
    if scans_in(plan) and not inputs:
        yield view, plan
    for each in inputs:
        yield from _leaves(each, views, view)
