"""The query of a scan, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from sqlglot import exp

from blendfusion.services.sources.database import Column
from blendfusion.services.sources.pushed_filters import FilterWriter
from blendfusion.services.sources.scan_advice import Advice


@dataclass(frozen=True)
class ScanQuery:
    """A query for columns of the rows of a table that meet conditions, as the advice of a scan has
    it."""

    source: exp.Table
    columns: Sequence[Column]
    conditions: Sequence[exp.Expr]
    advice: Advice
    writer: FilterWriter

    @property
    def is_counted(self) -> bool:
        """Whether its last column says how often each row comes."""
        return self.advice.grouping == "count"

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        fields = [pa.field(column.name, column.type) for column in self.columns]
        return pa.schema([*fields, pa.field("bf_rows", pa.int64())] if self.is_counted else fields)

    @cached_property
    def text(self) -> str:
        """The query in the words of the database."""
        query = exp.select(*map(self._column_of, self.columns)).from_(self.source)
        if self.is_counted:
            query = query.select(exp.alias_(exp.Count(this=exp.Star()), "bf_rows", quoted=True))
        if self.conditions:
            query = query.where(exp.and_(*self.conditions))
        if self.advice.grouping:
            query = query.group_by(*self._groups())
        if self.advice.limit is not None:
            keys = [self.writer.order(self._column(k.column), k) for k in self.advice.order]
            if keys:
                query = query.order_by(*(key for part in keys for key in part))
            query = query.limit(self.advice.limit)
        return query.sql(dialect=self.writer.dialect)

    def _column(self, name: str) -> Column:
        return self.writer.columns[name]

    def _groups(self) -> list[exp.Expr]:
        """The places of the columns that make groups."""
        extremes = self.advice.extremes
        return [
            exp.Literal.number(at)
            for at, column in enumerate(self.columns, 1)
            if column.name not in extremes
        ]

    def _column_of(self, column: Column) -> exp.Expr:
        function = self.advice.extremes.get(column.name)
        if function is None:
            if self.advice.grouping and column.kind == "text":
                return exp.alias_(self.writer.by_bytes(column), column.name, quoted=True)
            return column.to_select
        kind = exp.Max if function == "max" else exp.Min
        value: exp.Expr = kind(this=column.here)
        if column.read is not None:
            read = column.read.copy()
            read.find(exp.Column).replace(value)  # type: ignore[union-attr]
            value = read
        return exp.alias_(value, column.name, quoted=True)


def repeated_rows(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, most: int
) -> Iterator[pa.RecordBatch]:
    """Rows as often as the last column says, in batches of ``most`` at most. Without another
    column, the one of ``schema`` is NULL."""
    for batch in batches:
        counts = batch.columns[-1].to_numpy(zero_copy_only=False)
        ends = np.cumsum(counts)
        columns = batch.columns[:-1]
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, total, most):
            rows = np.arange(start, min(total, start + most))
            places = pa.array(np.searchsorted(ends, rows, side="right"))
            made = [column.take(places) for column in columns]
            made = made or [pa.nulls(len(rows), schema.field(0).type)]
            yield pa.RecordBatch.from_arrays(made, schema=schema)
