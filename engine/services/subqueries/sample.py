"""Reads the sample of a yes/no question from a subquery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blendfusion.errors import QueryError
from blendfusion.services.subqueries.subquery_rows import option_text, rows_of, text_rows
from blendfusion.udfs.declare.sample import sample_rows

if TYPE_CHECKING:
    from blendfusion.run.engine import Engine
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.udfs.ask.dispatcher import Dispatcher


def sample_frame(engine: Engine, query: str, width: int) -> BaseFrame:
    """A frame of the rows that ``query`` gives: ``width`` values, as texts. Nothing runs.

    Raises QueryError for a query that does not stand alone or has other columns.
    """
    hint = "Select the values in the order of the call, and no answer."
    return text_rows(engine, query, option_text("sample", query), width, hint)


def read_sample(
    frame: BaseFrame, query: str, dispatcher: Dispatcher
) -> tuple[tuple[str, ...], ...]:
    """The sample among the rows of ``frame``: see ``sample_rows``. Raises QueryError for no rows or
    too many; ``dispatcher`` answers the calls in the query."""
    sample = sample_rows(rows_of(frame, option_text("sample", query), dispatcher))
    if not sample:
        raise QueryError(
            f"{option_text('sample', query)} gives no sample",
            hint="Each row needs all values of the call, none of them NULL or blank.",
        )
    return sample
