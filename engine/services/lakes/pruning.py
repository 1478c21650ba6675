"""Tables of lakes whose readers leave out files by the parts of a filter."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pads

from blendfusion.services.scans.python_table import FilteredRows, ScannedTable, Scanner
from blendfusion.services.scans.scan_filters import (
    Application,
    Constant,
    Field,
    Tree,
    columns_of,
    conjuncts,
    expression_of,
    tree_of,
)

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_PRUNING = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_date)
"""The types whose comparisons leave out files; others are compared here alone."""


class ColumnTest(NamedTuple):
    """A comparison of a column with one value, ``is_in`` with some, or ``is_valid`` with none."""

    name: str
    column: str
    values: Sequence[Any]


class PrunedTable(ScannedTable):
    """The rows of a version of a table. ``shown``: its columns."""

    def __init__(self, shown: pa.Schema) -> None:
        super().__init__()
        self._schema = pa.schema([field.remove_metadata() for field in shown])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @abstractmethod
    def _batches(
        self, columns: Sequence[str], tests: Sequence[ColumnTest], batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        """Some columns of at least the rows that meet all tests, of the types of the table."""

    def _scan(
        self, columns: list[str] | None, where: pads.Expression | None, batch_size: int
    ) -> Scanner:
        tree = None if where is None else tree_of(where)
        names = self._schema.names if columns is None else columns
        read = list(names)
        if tree is not None:
            read += sorted(columns_of(tree) - {*read})
            where = expression_of(tree, self._schema)
        elif where is not None:
            read = self._schema.names
        read = read or self._schema.names[:1]
        tests = list(_column_tests(tree, self._schema))
        return FilteredRows(self._batches(read, tests, batch_size), self._schema, names, where)


def _column_tests(tree: Tree | None, schema: pa.Schema) -> Iterator[ColumnTest]:
    """Tests that all rows of a filter meet."""
    for part in conjuncts(tree) if tree is not None else ():
        found = _test(part, schema)
        if found is not None:
            yield found


def _test(tree: Tree, schema: pa.Schema) -> ColumnTest | None:
    if not isinstance(tree, Application) or not tree.arguments:
        return None
    field, other = tree.arguments[0], tree.arguments[-1]
    if not isinstance(field, Field):
        return None
    kind = schema.field(field.name).type
    if not any(prunes(kind) for prunes in _PRUNING):
        return None
    if tree.name == "is_valid":
        return ColumnTest(tree.name, field.name, ())
    if tree.name == "is_in":
        members = [member.as_py() for member in tree.members if member.is_valid]
        return ColumnTest(tree.name, field.name, members) if members else None
    if tree.name in COMPARISONS and isinstance(other, Constant) and other.value.is_valid:
        return ColumnTest(tree.name, field.name, (other.value.as_py(),))
    return None
