"""Gives names to tables without one: frames in a query as ``$df``, files and batches.

The planner reads plans back by the names of their tables, so each is a table of a hidden schema for
as long as a frame over it lives.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from itertools import count

from datafusion import DataFrame, SessionContext

from blendfusion.errors import BlendFusionError
from blendfusion.planner.ir.opaque_names import CATALOG, UNNAMED

HIDDEN_CATALOG = CATALOG
"""The catalogue of all tables that users do not see."""
UNNAMED_SCHEMA = UNNAMED
STAGE_SCHEMA = "stages"
"""The schema of tables and views that exist while a query runs."""
_numbers = count(1)


class UnnamedTable:
    """A table over the rows of ``frame``, dropped with this object. ``stem`` begins its name."""

    def __init__(self, context: SessionContext, frame: DataFrame, stem: str) -> None:
        self.name = f"{HIDDEN_CATALOG}.{UNNAMED_SCHEMA}.{stem}_{next(_numbers)}"
        context.ctx.register_table(self.name, frame.df.into_view(temporary=True))
        dropped = weakref.finalize(self, _drop, weakref.ref(context), self.name)
        dropped.atexit = False


def _drop(context: weakref.ref[SessionContext], name: str) -> None:
    own = context()
    if own is None:
        return
    with suppress(BlendFusionError):  # in a fork of the process, whose context is the parent's
        SessionContext.deregister_table(own, name)
