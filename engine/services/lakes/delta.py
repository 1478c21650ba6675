"""A version of a table of Delta Lake whose rows DataFusion cannot read by itself."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blendfusion.datafusion.arrow_types import is_text
from blendfusion.errors import QueryError
from blendfusion.services.lakes.pruning import ColumnTest, PrunedTable
from blendfusion.udfs.declare.arguments import quoted_name

_OPERATORS: Mapping[str, str] = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_ID = b"PARQUET:field_id"
_BINARY = (pa.binary(), pa.large_binary(), pa.binary_view())


def readable(table: Any) -> Any:
    """A ``deltalake.DeltaTable`` as DataFusion reads it. Raises QueryError for files whose columns
    have other names than the log says, which the library would read as NULL, and for partitions by
    binary values, which it would read as their spelling in the log."""
    _check_partitions(table)
    if _mapping(table) == "id":
        _check_names(table)
    # DataFusion wraps a scan that leaves out deleted rows, which refuses to be wrapped.
    is_scanned = has_marked_rows(table) or _may_have_empty_texts(table)
    return ScannedRows(table) if is_scanned and hasattr(table, "scan") else table


def has_marked_rows(table: Any) -> bool:
    """Whether rows of a table may be deleted by a mark alone."""
    return "deletionVectors" in (table.protocol().reader_features or ())


def has_other_names(table: Any) -> bool:
    """Whether columns may have other names in the files of a table."""
    return _mapping(table) != "none"


def _mapping(table: Any) -> str:
    return str(table.metadata().configuration.get("delta.columnMapping.mode", "none"))


def _may_have_empty_texts(table: Any) -> bool:
    """Whether an empty text may stand for NULL among the values of partitions, as the protocol has
    it. The library shows both as NULL here, and an empty text in rows."""
    if not _texts_of_partitions(table):
        return False
    files = pa.table(table.get_add_actions(flatten=True))
    parts = (name for name in files.schema.names if name.startswith("partition."))
    return any(files[name].null_count for name in parts)


def _texts_of_partitions(table: Any) -> list[str]:
    schema = pa.schema(table.schema().to_arrow())
    return [n for n in table.metadata().partition_columns if is_text(schema.field(n).type)]


class ScannedRows(PrunedTable):
    """The rows of a table in whose files deleted rows are only marked, or whose partitions have
    empty texts for NULL."""

    def __init__(self, table: Any) -> None:
        super().__init__(pa.schema(table.schema().to_arrow()))
        self._table, self._texts = table, _texts_of_partitions(table)

    def _batches(
        self, columns: Sequence[str], tests: Sequence[ColumnTest], batch_size: int
    ) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([self._schema.field(name) for name in columns])
        predicate = " AND ".join(map(_condition, tests)) or None
        rows = self._table.scan(columns=[*columns], predicate=predicate)
        for batch in pa.RecordBatchReader.from_stream(rows):
            yield self._with_nulls(batch.select(columns).cast(wanted))

    def _with_nulls(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for place, field in enumerate(batch.schema):
            if field.name in self._texts:
                column = batch.column(place)
                values = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
                batch = batch.set_column(place, field, values)
        return batch


def _condition(test: ColumnTest) -> str:
    column, values = quoted_name(test.column), ", ".join(map(_literal, test.values))
    if test.name == "is_valid":
        return f"{column} IS NOT NULL"
    if test.name == "is_in":
        return f"{column} IN ({values})"
    return f"{column} {_OPERATORS[test.name]} {values}"


def _literal(value: object) -> str:
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _check_partitions(table: Any) -> None:
    schema = pa.schema(table.schema().to_arrow())
    for name in table.metadata().partition_columns:
        if schema.field(name).type in _BINARY:
            raise QueryError(
                f"'{table.table_uri}' is partitioned by '{name}', whose binary values deltalake reads as "
                "other ones",
                hint="Write the table again without this partition.",
            )


def _check_names(table: Any) -> None:
    from deltalake.fs import DeltaStorageHandler

    files = pa.fs.PyFileSystem(DeltaStorageHandler.from_table(table._table))
    known = dict(_fields(json.loads(table.schema().to_json())))
    for path in pa.table(table.get_add_actions())["path"].to_pylist():
        for number, name in _ids(pq.read_schema(path, filesystem=files)):
            if known.get(number, name) != name:
                raise QueryError(
                    f"deltalake does not find the columns of '{table.table_uri}' by their numbers: "
                    f"{known.get(number)!r} has the name {name!r} in '{path}'"
                )


def _fields(kind: Any) -> Iterator[tuple[int, str]]:
    """The numbers and the names in files of the columns in a type of Delta Lake."""
    if not isinstance(kind, Mapping):
        return
    for field in kind.get("fields", ()):
        about = field["metadata"]
        if "delta.columnMapping.id" in about:
            yield about["delta.columnMapping.id"], about["delta.columnMapping.physicalName"]
        yield from _fields(field["type"])
    for inner in ("elementType", "keyType", "valueType"):
        yield from _fields(kind.get(inner))


def _ids(fields: Any) -> Iterator[tuple[int, str]]:
    """The numbers and names of the columns of a schema, or in a type of Arrow."""
    for at in range(len(fields.names) if isinstance(fields, pa.Schema) else fields.num_fields):
        field = fields.field(at)
        number = (field.metadata or {}).get(_ID)
        if number is not None:
            yield int(number), field.name
        if pa.types.is_nested(field.type):
            yield from _ids(field.type)
