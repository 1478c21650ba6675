"""A table of an attached database: each scan is a query there."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from threading import local
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pads
from sqlglot import exp

from blendfusion.services.scans.python_table import FilteredRows, Scan, ScannedTable, Scanner
from blendfusion.services.scans.scan_filters import (
    Application,
    Field,
    Tree,
    columns_of,
    expression_of,
    tree_of,
)
from blendfusion.services.sources.database import Column, Database
from blendfusion.services.sources.pushed_filters import DividedFilter, FilterWriter
from blendfusion.services.sources.remote_query import ScanQuery, repeated_rows
from blendfusion.services.sources.scan_advice import (
    NONE,
    Advice,
    SortKey,
    advice_for,
    current_snapshot,
)
from blendfusion.services.sources.snapshots import Snapshot
from blendfusion.services.sources.text_patterns import by_bytes

Heard = Callable[[str, str], None]
"""Hears of the query that a scan would be: the table, and the query."""


class _PlannedScan(local):
    columns: Sequence[str] | None = None


class RemoteTable(ScannedTable):
    """The rows of a table as a query finds them, with the columns of its first reading."""

    def __init__(
        self, database: Database, schema: str, name: str, columns: Sequence[Column], heard: Heard
    ) -> None:
        super().__init__()
        self.database, self._path, self._heard = database, (schema, name), heard
        self._columns = {column.name: column for column in columns}
        fields = [
            pa.field(c.name, c.type, metadata={"comment": c.comment} if c.comment else None)
            for c in columns
        ]
        self._schema = pa.schema(fields)
        self._writer = FilterWriter(self._columns, database.dialect)
        self._planned = _PlannedScan()

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    # --- advice ----------------------------------------------------------------------------------

    def own_conditions(self, trees: Iterable[Tree]) -> tuple[list[exp.Expr], bool]:
        """The conditions that the database has for conditions of a plan, and whether they mean the
        same."""
        found: list[exp.Expr] = []
        is_exact = True
        for tree in trees:
            own = self._own_keys(tree)
            divided = DividedFilter((), ()) if own is None else self._writer.divide(own)
            found += divided.there
            is_exact = is_exact and own is not None and not divided.here
        return found, is_exact

    def _own_keys(self, tree: Tree) -> Tree | None:
        """A condition with the query of its keys; None for keys of another database."""
        if not isinstance(tree, Application) or tree.name != "in_query":
            return tree
        (field,), key = tree.arguments, tree.options
        assert isinstance(field, Field)
        is_own = key.table.database is self.database
        same = is_own and key.type == self._columns[field.name].type
        return Application(tree.name, tree.arguments, key.query) if same else None

    def sorts_by(self, order: Iterable[SortKey]) -> bool:
        """Whether the database sorts by the columns as DataFusion does."""
        return all(self._writer.has_order(self._columns[key.column]) for key in order)

    def compares(self, names: Iterable[str]) -> bool:
        """Whether the database finds the same least and greatest values."""
        kinds = ("number", "date", "timestamp")
        columns = [self._columns[name] for name in names]
        return all(column.kind in kinds and column.is_exact for column in columns)

    def groups_by(self, names: Iterable[str]) -> bool:
        """Whether values that are equal there are the same."""
        kinds = ("number", "date", "timestamp", "boolean", "text")
        columns = [self._columns[name] for name in names]
        return all(column.kind in kinds and column.is_exact for column in columns)

    def key_query(self, name: str, trees: Sequence[Tree]) -> KeyQuery | None:
        """The query for the values of a column in the rows that may meet some conditions; None if
        these are all rows, or the database does not understand any of it."""
        conditions, _ = self.own_conditions(trees)
        column = self._columns[name]
        if not conditions or (column.kind == "text" and self.database.dialect == "mysql"):
            return None
        is_text = column.kind == "text"
        key = by_bytes(column, self.database.dialect) if is_text else column.here
        query = exp.select(key).from_(self._source).where(exp.and_(*conditions))
        return KeyQuery(self, column.type, query)

    # --- scans -----------------------------------------------------------------------------------

    @property
    def _source(self) -> exp.Table:
        schema, table = self._path
        return exp.table_(table, db=schema, quoted=True)

    def scanner(self, **options: Any) -> pads.Scanner:
        """See ``ScannedTable``. DataFusion asks for it just before the fragments of the scan."""
        columns = options.get("columns")
        self._planned.columns = columns
        query = self._query(columns, self._divide(options.get("filter")), self._advice(columns))
        self._heard(self._path[1], query.text)
        return super().scanner(**options)

    def scans(self) -> Sequence[Scan]:
        advice, snapshot = self._advice(self._planned.columns), current_snapshot()
        if snapshot is not None:
            snapshot.expect(self.database)

        def scan(
            columns: list[str] | None, where: pads.Expression | None, batch_size: int
        ) -> Scanner:
            return self._read(columns, where, batch_size, advice, snapshot)

        return (scan,)

    def _advice(self, columns: Sequence[str] | None) -> Advice:
        return advice_for(self, frozenset(self._columns if columns is None else columns))

    def _divide(self, where: pads.Expression | None) -> DividedFilter:
        tree = None if where is None else tree_of(where)
        return DividedFilter((), ()) if tree is None else self._writer.divide(tree)

    def _query(
        self, columns: Sequence[str] | None, where: DividedFilter, advice: Advice
    ) -> ScanQuery:
        """The query of a scan: also for columns that only the rest of the filter reads. A scan of
        no column reads one, unless its rows are only counted."""
        names = list(self._columns) if columns is None else list(columns)
        names += sorted({name for tree in where.here for name in columns_of(tree)} - {*names})
        is_plain = advice.limit is None and advice.grouping != "extremes"
        if where.here and not (is_plain and self.groups_by(names)):
            advice = Advice(advice.conditions)
        if advice.grouping != "count":
            names = names or list(self._columns)[:1]
        return ScanQuery(
            self._source,
            [self._columns[name] for name in names],
            (*where.there, *(c for c in advice.conditions if c not in where.there)),
            advice,
            self._writer,
        )

    def _read(
        self,
        columns: list[str] | None,
        where: pads.Expression | None,
        batch_size: int,
        advice: Advice,
        snapshot: Snapshot | None,
    ) -> Scanner:
        divided = self._divide(where)
        if where is not None and not (divided.there or divided.here):  # it is not known here
            query, rest = self._query(None, divided, NONE), [where]
        else:
            query = self._query(columns, divided, advice)
            rest = [expression_of(tree, self._schema) for tree in divided.here]
        names = list(self._columns) if columns is None else columns
        batches = self.database.batches(query.text, query.schema, batch_size, snapshot)
        schema = query.schema
        if query.is_counted:
            schema = pa.schema([*schema][:-1] or [self._schema.field(0).remove_metadata()])
            batches = repeated_rows(batches, schema, batch_size)
        kept = functools.reduce(operator.and_, rest) if rest else None
        return FilteredRows(batches, schema, names, kept)


class KeyQuery(NamedTuple):
    """A query for keys."""

    table: RemoteTable
    type: pa.DataType
    query: exp.Query
