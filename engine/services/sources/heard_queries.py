"""The queries that scans of a plan send to attached databases, for EXPLAIN."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from datafusion import DataFrame

from blendfusion.datafusion.part_views import PartViews
from blendfusion.datafusion.unnamed_tables import HIDDEN_CATALOG
from blendfusion.services.sources.attached_run import advice_of
from blendfusion.services.sources.scan_advice import following

if TYPE_CHECKING:
    from blendfusion.planner.stages.split import Stage
    from blendfusion.services.sources.session import Attaching


def frame_lines(session: Attaching, frame: DataFrame) -> list[str]:
    """A line for each query, which planning the frame tells. None of them runs; no line for a frame
    that cannot be planned alone."""
    with ExitStack() as stack:
        heard = {name: stack.enter_context(one.hearing()) for name, one in session.attached.items()}
        try:
            stack.enter_context(following(advice_of(session, session.attached, frame), None))
            DataFrame.execution_plan(frame)
        except Exception:  # the query's own error comes when it runs
            return []
        found = [f"{name} is sent: {query}" for name in heard for _, query in heard[name]]
        return list(dict.fromkeys(found))


def stage_lines(session: Attaching, stage: Stage) -> list[str]:
    """The lines of a stage's source; none for one that reads the rows of other stages."""
    views = PartViews(session, f"{HIDDEN_CATALOG}.shown", {})
    try:
        return frame_lines(session, views.frame(stage.block.source))
    except Exception:  # it reads what does not exist before a run
        return []
    finally:
        views.close()
