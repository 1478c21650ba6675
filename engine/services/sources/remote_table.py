"""A table of an attached database: each scan is a query there."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
from sqlglot import exp

from blendfusion.datafusion.python_table import FilteredRows, ScannedTable, Scanner
from blendfusion.datafusion.scan_filters import columns_of, expression_of, tree_of
from blendfusion.services.sources.database import Column, Database
from blendfusion.services.sources.pushed_filters import DividedFilter, FilterWriter

Heard = Callable[[str, str], None]
"""Hears of the query that a scan would be: the table, and the query."""


class RemoteTable(ScannedTable):
    """The rows of a table as they are when a scan begins, with the columns of its first reading."""

    def __init__(
        self, database: Database, schema: str, name: str, columns: Sequence[Column], heard: Heard
    ) -> None:
        super().__init__()
        self._database, self._path, self._heard = database, (schema, name), heard
        self._columns = {column.name: column for column in columns}
        fields = [
            pa.field(c.name, c.type, metadata={"comment": c.comment} if c.comment else None)
            for c in columns
        ]
        self._schema = pa.schema(fields)
        self._writer = FilterWriter(self._columns, database.dialect)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(self, **options: Any) -> pads.Scanner:
        query = self._query(options.get("columns"), self._divide(options.get("filter")))[0]
        self._heard(self._path[1], query)
        return super().scanner(**options)

    def _divide(self, where: pads.Expression | None) -> DividedFilter:
        tree = None if where is None else tree_of(where)
        return DividedFilter((), ()) if tree is None else self._writer.divide(tree)

    def _query(self, columns: Sequence[str] | None, where: DividedFilter) -> tuple[str, pa.Schema]:
        """The query of a scan, and the schema of its rows: also of columns that only the rest of
        the filter reads. A scan of no column reads one."""
        names = list(self._columns) if columns is None else list(columns)
        names += sorted({name for tree in where.here for name in columns_of(tree)} - {*names})
        names = names or list(self._columns)[:1]
        schema, table = self._path
        query = exp.select(*(self._columns[name].to_select for name in names)).from_(
            exp.table_(table, db=schema, quoted=True)
        )
        if where.there:
            query = query.where(exp.and_(*where.there))
        return query.sql(dialect=self._database.dialect), pa.schema(
            [self._schema.field(name).remove_metadata() for name in names]
        )

    def _scan(
        self, columns: list[str] | None, where: pads.Expression | None, batch_size: int
    ) -> Scanner:
        divided = self._divide(where)
        unread = where is not None and not (divided.there or divided.here)
        query, schema = self._query(None if unread else columns, divided)
        rest = [expression_of(tree, self._schema) for tree in divided.here]
        kept = where if unread else functools.reduce(operator.and_, rest) if rest else None
        names = list(self._columns) if columns is None else columns
        batches = self._database.batches(query, schema, batch_size)
        return FilteredRows(batches, schema, names, kept)
