"""Frames that a query names as ``$df``: views for as long as DataFusion plans the query."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from datafusion import DataFrame, SessionContext, SQLOptions


def sql_over_frames(
    context: SessionContext,
    query: str,
    options: SQLOptions | None,
    values: dict[str, Any] | None,
    named: Mapping[str, Any],
) -> DataFrame:
    """As ``SessionContext.sql``, which leaves a view in the context for each frame in ``named``;
    here the views are dropped afterwards. The plan holds its sources itself."""
    views = {
        name: f"view_{uuid.uuid4().hex}"
        for name, value in named.items()
        if isinstance(value, DataFrame)
    }
    texts = {name: views.get(name, value) for name, value in named.items()}
    try:
        for name, view in views.items():
            context.ctx.register_table(view, named[name].df.into_view(temporary=True))
        return SessionContext.sql(context, query, options, values, **texts)
    finally:
        for view in views.values():
            SessionContext.deregister_table(context, view)
