"""The values of frames as MySQL and MariaDB keep them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from sqlglot import exp

from blendfusion.services.sources.fit_values import check_numbers
from blendfusion.services.sources.table_changes import StoredType

_BATCH = 5_000
_BINARY = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_STAGE = "bf_rows"


def stored_type(kind: pa.DataType, *, is_key: bool) -> StoredType | None:
    """How a new table keeps values of a type. Texts compare by their bytes there; those of a key
    are short, because a key has a longest length."""
    if pt.is_integer(kind):
        sizes = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}
        unsigned = " UNSIGNED" if pt.is_unsigned_integer(kind) else ""
        return StoredType(f"{sizes[kind.bit_width]}{unsigned}", kind)
    if pt.is_floating(kind):
        return StoredType("DOUBLE", pa.float64())
    if pt.is_string(kind):
        return StoredType(f"{'VARCHAR(255)' if is_key else 'LONGTEXT'} {_BINARY}", kind)
    if pt.is_binary(kind):
        return StoredType("VARBINARY(255)" if is_key else "LONGBLOB", kind)
    if pt.is_decimal(kind) and kind.precision <= 65 and 0 <= kind.scale <= 30:
        return StoredType(f"DECIMAL({kind.precision},{kind.scale})", kind)
    if pt.is_timestamp(kind):
        zone = None if kind.tz is None else "UTC"
        name = "DATETIME(6)" if zone is None else "TIMESTAMP(6) NULL"
        return StoredType(name, pa.timestamp("us", zone))
    if pt.is_time(kind):
        return StoredType("TIME(6)", pa.time64("us"))
    names = {pa.bool_(): "BOOLEAN", pa.date32(): "DATE"}
    return StoredType(names[kind], kind) if kind in names else None


def _quote(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="mysql")


def _value(value: Any) -> Any:
    """A value as the driver takes it: a moment has no zone, that of the connection is UTC."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def _rows(table: pa.Table) -> Iterator[list[tuple[Any, ...]]]:
    for batch in table.to_batches(max_chunksize=_BATCH):
        columns = ([_value(value) for value in array.to_pylist()] for array in batch.columns)
        yield list(zip(*columns, strict=True))


class MysqlTransaction:
    """A transaction of one connection."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def load(self, rows: pa.Table) -> str:
        definitions = []
        for name, kind in zip(rows.column_names, rows.schema.types, strict=True):
            check_numbers(rows.column(name), name, infinite=False)
            stored = stored_type(kind, is_key=False)
            assert stored is not None
            definitions.append(f"{_quote(name)} {stored.name}")
        self._cursor.execute(f"CREATE TEMPORARY TABLE {_STAGE} ({', '.join(definitions)})")
        marks = ", ".join(["%s"] * rows.num_columns)
        for part in _rows(rows):
            self._cursor.executemany(f"INSERT INTO {_STAGE} VALUES ({marks})", part)
        return _STAGE

    def execute(self, statement: str) -> None:
        self._cursor.execute(statement)
