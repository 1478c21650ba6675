"""Options from data: the values of a subquery's one column as the closed set of a call's answers."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import col

from blendfusion.errors import QueryError

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.session import Session
    from blendfusion.udfs.asker import Asker

MAX_OPTIONS = 1_000
"""A model chooses among options one by one: more than these are a task for a join."""


def option_frame(session: Session, query: str) -> Frame:
    """A frame of the options that ``query`` gives: one column of distinct texts, in no order.

    Nothing runs. Raises QueryError for a query that does not stand alone or has not one column.
    """
    try:
        frame = session.sql(query)
    except QueryError as problem:
        hint = problem.hint
        if problem.message.startswith("unknown column"):
            hint = f"{hint or ''} The subquery sees no column of the query around it.".strip()
        raise QueryError(f"{_shown(query)}: {problem.message}", hint=hint) from problem
    schema = frame.schema()
    if len(schema.names) != 1:
        raise QueryError(
            f"{_shown(query)} gives {len(schema.names)} columns", hint="Select one column."
        )
    kind = schema.types[0]
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise QueryError(
            f"{_shown(query)} gives values of type {kind}", hint="Select a column of texts."
        )
    name = schema.names[0].replace('"', '""')
    option = col(f'"{name}"').cast(pa.string()).alias("option")
    return frame.select(option).distinct().limit(MAX_OPTIONS + 2)


def read_options(frame: Frame, query: str, asker: Asker) -> tuple[str, ...]:
    """The options, sorted; NULL and blank ones are left out. Raises QueryError if they are too many.

    Calls in the query are answered by ``asker``.
    """
    with closing(frame.answered(asker, eager=True)) as tables:
        column = pa.concat_tables(list(tables)).column(0)
    options = sorted(text for text in column.to_pylist() if text is not None and text.strip())
    if len(options) > MAX_OPTIONS:
        raise QueryError(
            f"{_shown(query)} gives more than {MAX_OPTIONS:,} values",
            hint="Options are for a small closed set: narrow the subquery down.",
        )
    return tuple(options)


def _shown(query: str) -> str:
    return f"options => ({' '.join(query.split())})"
