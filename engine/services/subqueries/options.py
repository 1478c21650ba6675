"""Reads the options of a call from a subquery with one column."""

from __future__ import annotations

import warnings
from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.run.reports.trace import AnswerWarning
from blendfusion.services.subqueries.subquery_rows import option_text, standing_alone, text_columns
from blendfusion.udfs.declare.arguments import INFERRED

if TYPE_CHECKING:
    from blendfusion.run.engine import Engine
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.udfs.ask.dispatcher import Dispatcher

MAX_OPTIONS = 1_000
"""A model chooses among options one by one: more than these are a task for a join."""


def option_frame(engine: Engine, query: str) -> BaseFrame:
    """A frame of the options that ``query`` gives: one column of distinct texts, in no order.

    Nothing runs. Raises QueryError for a query that does not stand alone or has not one column.
    """
    shown = option_text("options", query)
    frame = standing_alone(engine, query, shown)
    columns = len(frame.schema().names)
    if columns != 1:
        raise QueryError(f"{shown} gives {columns} columns", hint="Select one column.")
    return frame.select(*text_columns(frame, shown)).distinct().limit(MAX_OPTIONS + 2)


def read_options(frame: BaseFrame, query: str, dispatcher: Dispatcher) -> tuple[str, ...] | None:
    """The options, sorted; NULL and blank ones are left out. Raises QueryError if they are too
    many; of inferred ones, warns and returns None.

    Calls in the query are answered by ``dispatcher``.
    """
    with closing(frame.answer_tables(dispatcher, eager=True)) as tables:
        column = pa.concat_tables(list(tables)).column(0)
    options = sorted(text for text in column.to_pylist() if text is not None and text.strip())
    if len(options) > MAX_OPTIONS and INFERRED in query:
        warnings.warn(
            f"{option_text('options', query)} gives more than {MAX_OPTIONS:,} values: the answer is a free text. "
            "Give options to choose among fewer.",
            AnswerWarning,
            stacklevel=2,
        )
        return None
    if len(options) > MAX_OPTIONS:
        raise QueryError(
            f"{option_text('options', query)} gives more than {MAX_OPTIONS:,} values",
            hint="Options are for a small closed set: narrow the subquery down.",
        )
    return tuple(options)
