"""Frames that a query names as ``$df``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datafusion import DataFrame, SessionContext, SQLOptions

from blendfusion.datafusion.unnamed_tables import UnnamedTable


def frame_tables(context: SessionContext, named: Mapping[str, Any]) -> Mapping[str, UnnamedTable]:
    """A table for each frame in ``named``; the plan of a query that names it can be read as long as
    the table lives."""
    frames = {name: value for name, value in named.items() if isinstance(value, DataFrame)}
    return {name: UnnamedTable(context, frame, name) for name, frame in frames.items()}


def sql_over_frames(
    context: SessionContext,
    query: str,
    options: SQLOptions | None,
    values: dict[str, Any] | None,
    named: Mapping[str, Any],
    tables: Mapping[str, UnnamedTable],
) -> DataFrame:
    """As ``SessionContext.sql``, with ``tables`` (``frame_tables``) in place of frames."""
    texts = {**named, **{name: table.name for name, table in tables.items()}}
    return SessionContext.sql(context, query, options, values, **texts)
