"""A snapshot of a table of Iceberg: its scan leaves out files by the filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from blendfusion.datafusion.python_table import FilteredRows, ScannedTable, Scanner
from blendfusion.datafusion.scan_filters import (
    Application,
    Constant,
    Field,
    Tree,
    columns_of,
    conjuncts,
    expression_of,
    tree_of,
)

_COMPARISONS = {
    "equal": "EqualTo",
    "not_equal": "NotEqualTo",
    "less": "LessThan",
    "less_equal": "LessThanOrEqual",
    "greater": "GreaterThan",
    "greater_equal": "GreaterThanOrEqual",
}
_PRUNING = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_date)
"""The types whose comparisons leave out files; others are compared here alone."""


class IcebergTable(ScannedTable):
    """The rows of one snapshot; None: a table without any."""

    def __init__(self, table: Any, snapshot: int | None) -> None:
        super().__init__()
        self.table, self.snapshot = table, snapshot
        scan = table.scan(snapshot_id=snapshot) if snapshot is not None else table.scan()
        self._schema = pa.schema(
            [field.remove_metadata() for field in scan.projection().as_arrow()]
        )

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
        if self.snapshot is None:
            return
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
    for part in conjuncts(tree):
        test = _test(part, schema)
        found = found if test is None else And(found, test)
    return found


def _test(tree: Tree, schema: pa.Schema) -> Any:
    import pyiceberg.expressions

    expressions: Any = pyiceberg.expressions
    if not isinstance(tree, Application) or not tree.arguments:
        return None
    field = tree.arguments[0]
    if not isinstance(field, Field) or not any(
        test(schema.field(field.name).type) for test in _PRUNING
    ):
        return None
    if tree.name == "is_valid":
        return expressions.NotNull(expressions.Reference(field.name))
    if tree.name == "is_in":
        members = [member.as_py() for member in tree.members if member.is_valid]
        return expressions.In(expressions.Reference(field.name), members) if members else None
    other = tree.arguments[-1]
    if tree.name not in _COMPARISONS or not isinstance(other, Constant) or not other.value.is_valid:
        return None
    kind = getattr(expressions, _COMPARISONS[tree.name])
    return kind(expressions.Reference(field.name), other.value.as_py())
