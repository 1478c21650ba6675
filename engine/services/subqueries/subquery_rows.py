"""Evaluates a subquery in the place of a literal, to columns of texts."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import Expr, col

from blendfusion.errors import Hint, QueryError
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.run.engine import Engine
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.udfs.ask.dispatcher import Dispatcher

MAX_ROWS = 10_000
"""Rows of examples or of a sample: a few of them count, and a part of more is as good."""


def standing_alone(engine: Engine, query: str, shown: str) -> BaseFrame:
    """The frame of a query that stands alone; nothing runs. Raises QueryError, which names it as
    ``shown``."""
    try:
        return engine.texts.sql(query)
    except QueryError as problem:
        hint = problem.hint
        if problem.message.startswith("unknown column"):
            more = "The subquery sees no column of the query around it."
            hint = hint.map(lambda words: f"{words} {more}") if hint else Hint.read(more)
        raise QueryError(f"{shown}: {problem.message}", hint=hint) from problem


def option_text(option: str, query: str) -> str:
    """An option whose value is a subquery, as messages show it."""
    return f"{option} => ({' '.join(query.split())})"


def text_rows(engine: Engine, query: str, shown: str, width: int, hint: str) -> BaseFrame:
    """A frame of the distinct rows of a query that stands alone, as ``width`` texts. Nothing runs.

    Raises QueryError for other columns, with ``hint``.
    """
    frame = standing_alone(engine, query, shown)
    columns = len(frame.schema().names)
    if columns != width:
        raise QueryError(f"{shown} gives {columns} columns where {width} are needed", hint=hint)
    return frame.select(*text_columns(frame, shown)).distinct().limit(MAX_ROWS + 1)


def rows_of(frame: BaseFrame, shown: str, dispatcher: Dispatcher) -> list[tuple[str | None, ...]]:
    """The rows of a frame of ``text_rows``, in no order; ``dispatcher`` answers the calls in its
    query. Raises QueryError for too many."""
    with closing(frame.answer_tables(dispatcher, eager=True)) as tables:
        table = pa.concat_tables(list(tables))
    if table.num_rows > MAX_ROWS:
        raise QueryError(
            f"{shown} gives more than {MAX_ROWS:,} rows",
            hint="A sample is as good: put a filter, or ORDER BY and LIMIT, into the subquery.",
        )
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def text_columns(frame: BaseFrame, shown: str) -> list[Expr]:
    """The columns of ``frame`` as texts, by names of their own. Raises QueryError for what has no
    text."""
    schema = frame.schema()
    texts = []
    for place, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True)):
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise QueryError(
                f"{shown} gives values of type {kind}", hint="Select a column of texts."
            )
        texts.append(col(quoted_name(name)).cast(pa.string()).alias(f"part_{place}"))
    return texts
