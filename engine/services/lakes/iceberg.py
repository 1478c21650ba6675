"""A snapshot of a table of Iceberg: its scan leaves out files by the filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from blendfusion.services.lakes.pruning import ColumnTest, column_tests
from blendfusion.services.scans.python_table import FilteredRows, ScannedTable, Scanner
from blendfusion.services.scans.scan_filters import Tree, columns_of, expression_of, tree_of

_COMPARISONS = {
    "equal": "EqualTo",
    "not_equal": "NotEqualTo",
    "less": "LessThan",
    "less_equal": "LessThanOrEqual",
    "greater": "GreaterThan",
    "greater_equal": "GreaterThanOrEqual",
}


class IcebergTable(ScannedTable):
    """The rows of one snapshot, by its schema; None: of the newest, by that of the table."""

    def __init__(self, table: Any, snapshot: int | None) -> None:
        super().__init__()
        self.table, self.snapshot = table, snapshot
        shown = table.scan(snapshot_id=snapshot).projection().as_arrow()
        self._schema = pa.schema([field.remove_metadata() for field in shown])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def _scan(
        self, columns: list[str] | None, where: pads.Expression | None, batch_size: int
    ) -> Scanner:
        tree = None if where is None else tree_of(where)
        read = (
            list(self._schema.names)
            if columns is None or (where is not None and tree is None)
            else list(columns)
        )
        if tree is not None:
            read += sorted(columns_of(tree) - {*read})
            where = expression_of(tree, self._schema)
        read = read or self._schema.names[:1]
        names = self._schema.names if columns is None else columns
        return FilteredRows(self._batches(read, tree, batch_size), self._schema, names, where)

    def _batches(
        self, columns: Sequence[str], tree: Tree | None, rows: int
    ) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([self._schema.field(name) for name in columns])
        chosen: dict[str, Any] = (
            {} if tree is None else {"row_filter": _pruning(tree, self._schema)}
        )
        scan = self.table.scan(selected_fields=tuple(columns), snapshot_id=self.snapshot, **chosen)
        for batch in scan.to_arrow_batch_reader():
            for start in range(0, batch.num_rows, rows):
                yield pa.RecordBatch.from_arrays(
                    [
                        batch.column(name).slice(start, rows).cast(wanted.field(name).type)
                        for name in columns
                    ],
                    schema=wanted,
                )


def _pruning(tree: Tree, schema: pa.Schema) -> Any:
    """A condition of Iceberg that all rows of the filter meet."""
    from pyiceberg.expressions import AlwaysTrue, And

    found: Any = AlwaysTrue()
    for test in column_tests(tree, schema):
        found = And(found, _condition(test))
    return found


def _condition(test: ColumnTest) -> Any:
    import pyiceberg.expressions

    expressions: Any = pyiceberg.expressions
    column = expressions.Reference(test.column)
    if test.name == "is_valid":
        return expressions.NotNull(column)
    if test.name == "is_in":
        return expressions.In(column, test.values)
    return getattr(expressions, _COMPARISONS[test.name])(column, *test.values)
