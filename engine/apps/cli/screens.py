"""The first screen of a result: its first rows as soon as they are there, and how many follow."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

import blendfusion as bf
from blendfusion.datafusion.arrow_layouts import concat
from blendfusion.run.observe.progress import Reporter, count_noun, progress

SCREEN_ROWS = 40
"""The most rows of a screen."""
KEPT_ROWS = 30_000
"""Rows of a query without questions that are read beyond the screen, to be counted and paged."""

Rows: TypeAlias = "pa.Table | bf.Frame"
"""A result: a table, or a frame that is run now."""


@dataclass
class Screens:
    """The rows of a result that were read, and how many of them were shown."""

    held: pa.Table
    shown: int
    whole: bool
    """No row follows those that are held."""

    def following(self, remedy: str) -> str:
        """The line below the rows: their number, or how many follow and the ``remedy``, which shows
        them.

        >>> Screens(pa.table({"x": [1, 2, 3]}), 2, True).following("\\\\more shows them")
        '… 1 more row (\\\\more shows them)'
        """
        left = len(self.held) - self.shown
        if self.whole and not left:
            return count_noun(self.shown, "row")
        number = count_noun(left, "more row")
        return f"… {number if self.whole else f'more than {number}'} ({remedy})"

    def next(self, most: int) -> pa.Table:
        """The next rows, at most ``most``."""
        part = self.held.slice(self.shown, most)
        self.shown += len(part)
        return part


def first_screen(rows: Rows, most: int, show: Callable[[pa.Table], None]) -> Screens:
    """Call ``show`` with the first ``most`` rows (0: all) as soon as they are there, then read what
    follows: all of it where the query asks a model, else so many rows as are kept."""
    asks = isinstance(rows, bf.Frame) and (bool(rows.prepared.calls) or rows.statement is not None)
    parts: list[pa.Table] = []
    held, shown, whole = 0, False, True

    def draw() -> None:
        nonlocal parts
        parts = [concat(parts)]
        show(parts[0].slice(0, most) if most else parts[0])

    with reporting(rows) as reporter, closing(tables_of(rows, eager=not most)) as tables:
        for table in tables:
            parts.append(table)
            held += len(table)
            if most and held > most and not shown:
                shown = True
                reporter.pause()
                draw()
            if most and not asks and held > KEPT_ROWS:
                whole = False
                break
    if not shown:
        draw()
    return Screens(concat(parts), min(held, most or held), whole)


@contextmanager
def reporting(rows: Rows) -> Iterator[Reporter]:
    """The reporter of the run within this context."""
    if not isinstance(rows, bf.Frame):
        yield Reporter()
        return
    session, before = rows.session, rows.session.runs.reporter
    session.runs.reporter = reporter = before or progress(session.options.progress)
    try:
        yield reporter
    finally:
        session.runs.reporter = before


def tables_of(rows: Rows, *, eager: bool = True) -> Generator[pa.Table, None, None]:
    """Tables of one schema; at least one. ``eager``: all of them will be read."""
    if not isinstance(rows, bf.Frame):
        yield rows
        return
    schema: pa.Schema | None = None
    with rows.stream(eager=eager) as stream:
        for batch in stream:
            table = pa.Table.from_batches([batch.to_pyarrow()])
            schema = schema or table.schema
            yield table.cast(schema)
        if schema is None:
            yield stream.schema.empty_table()
