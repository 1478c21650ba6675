"""A snapshot of a table of Iceberg: its scan leaves out files by the filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.services.lakes.pruning import ColumnTest, PrunedTable

_COMPARISONS = {
    "equal": "EqualTo",
    "not_equal": "NotEqualTo",
    "less": "LessThan",
    "less_equal": "LessThanOrEqual",
    "greater": "GreaterThan",
    "greater_equal": "GreaterThanOrEqual",
}


class IcebergTable(PrunedTable):
    """The rows of one snapshot, by its schema; None: of the newest, by that of the table."""

    def __init__(self, table: Any, snapshot: int | None) -> None:
        super().__init__(table.scan(snapshot_id=snapshot).projection().as_arrow())
        self.table, self.snapshot = table, snapshot
        now = {field.name: field.field_id for field in table.schema().fields}
        then = table.scan(snapshot_id=snapshot).projection().fields
        self._known = {field.name for field in then if now.get(field.name) == field.field_id}
        """The columns that have their names still: the library finds those of filters by the names
        of today, whatever the snapshot."""

    def _batches(
        self, columns: Sequence[str], tests: Sequence[ColumnTest], batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        from pyiceberg.expressions import AlwaysTrue, And

        wanted = pa.schema([self._schema.field(name) for name in columns])
        condition: Any = AlwaysTrue()
        for test in (test for test in tests if test.column in self._known):
            condition = And(condition, _condition(test))
        scan = self.table.scan(
            row_filter=condition, selected_fields=tuple(columns), snapshot_id=self.snapshot
        )
        for batch in _batches(scan):
            for start in range(0, batch.num_rows, batch_size):
                yield pa.RecordBatch.from_arrays(
                    [
                        batch.column(name).slice(start, batch_size).cast(wanted.field(name).type)
                        for name in columns
                    ],
                    schema=wanted,
                )


def _batches(scan: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a scan. Raises QueryError for what the library does not read, such as rows that
    another engine has deleted by their values."""
    try:
        yield from scan.to_arrow_batch_reader()
    except (NotImplementedError, ValueError) as problem:
        reason = str(problem).split(": http")[0]
        raise QueryError(
            f"pyiceberg cannot read this table of Iceberg: {reason}",
            hint="If rows were deleted by equality, let the engine that deleted them rewrite the files.",
        ) from problem


def _condition(test: ColumnTest) -> Any:
    import pyiceberg.expressions

    expressions: Any = pyiceberg.expressions
    column = expressions.Reference(test.column)
    if test.name == "is_valid":
        return expressions.NotNull(column)
    if test.name == "is_in":
        return expressions.In(column, test.values)
    return getattr(expressions, _COMPARISONS[test.name])(column, *test.values)
