"""The history of a conversation, as the prompt of the next question shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from blendfusion.services.ask import last
from blendfusion.services.ask.prompt import QUESTION, as_lines
from blendfusion.services.ask.read_catalog import type_word
from blendfusion.services.ask.schema.catalog import Column, Table
from blendfusion.services.ask.where import parse
from blendfusion.types import Task

_MOST = 3
"""The number of earlier questions that the model sees."""
_GOING_ON = (
    " The question may go on from the history: then write the last query again, whole, with the "
    "change; or read the rows of the last query as the table last."
)


@dataclass(frozen=True, slots=True)
class Before:
    """The questions and queries before, oldest first, and the columns of the last result."""

    pairs: Sequence[tuple[str, str]]
    columns: pa.Schema

    def table(self) -> Table:
        """The last result as a table of the catalogue."""
        columns = tuple(Column(field.name, type_word(field.type)) for field in self.columns)
        return Table(last.LAST, columns)

    def tables(self, known: Sequence[str]) -> set[str]:
        """The tables that the last query reads, of those ``known``, and ``last``."""
        tree = parse(self.pairs[-1][1])
        found = () if tree is None else tree.find_all(exp.Table)
        read = {exp.table_name(table).lower() for table in found}
        return {last.LAST, *(name for name in known if name.lower() in read)}

    def standing_alone(self, sql: str) -> str:
        """A query that needs no history, for one that reads ``last``."""
        return last.standing_alone(sql, self.pairs[-1][1])

    def with_history(
        self, task: Task, values: tuple[str | None, ...]
    ) -> tuple[Task, tuple[str | None, ...]]:
        """A task of drafting with the history behind the tables."""
        first, *rest = task.columns
        history = as_lines(self.pairs[-_MOST:])
        wider = replace(task, question=QUESTION + _GOING_ON, columns=(first, "history", *rest))
        return wider, (values[0], history, *values[1:])
