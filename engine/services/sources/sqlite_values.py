"""The values of frames as SQLite keeps them: it has numbers, texts and bytes."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from blendfusion.services.sources.fit_values import check_numbers
from blendfusion.services.sources.table_changes import StoredType

_MOST_DIGITS = 15
"""The decimals that a DOUBLE tells apart."""
_BATCH = 10_000
_STAGE = 'temp."bf_rows"'


def stored_type(kind: pa.DataType) -> StoredType | None:
    """How a new table keeps values of a type: the names are those that its reader knows again."""
    if pt.is_integer(kind):
        return StoredType("INTEGER", pa.int64())
    if pt.is_floating(kind):
        return StoredType("REAL", pa.float64())
    if pt.is_timestamp(kind):
        name = "DATETIME" if kind.tz is None else "DATETIME WITH TIME ZONE"
        return StoredType(name, pa.timestamp("us", None if kind.tz is None else "UTC"))
    if pt.is_decimal(kind) and kind.precision <= _MOST_DIGITS and kind.scale >= 0:
        return StoredType(f"DECIMAL({kind.precision},{kind.scale})", kind)
    names = {pa.bool_(): "BOOLEAN", pa.string(): "TEXT", pa.binary(): "BLOB", pa.date32(): "DATE"}
    return StoredType(names[kind], kind) if kind in names else None


def _moment(value: datetime.datetime) -> str:
    return value.isoformat(sep=" ")


_FORMS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (pt.is_boolean, int),
    (pt.is_date, datetime.date.isoformat),
    (pt.is_timestamp, _moment),
    (pt.is_decimal, lambda value: int(value) if value == int(value) else float(value)),
)


def _values(array: pa.Array) -> list[Any]:
    known = array.to_pylist()
    for test, form in _FORMS:
        if test(array.type):
            return [None if value is None else form(value) for value in known]
    return list(known)


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in table.to_batches(max_chunksize=_BATCH):
        yield from zip(*map(_values, batch.columns), strict=True)


@dataclass(frozen=True, slots=True)
class SqliteTransaction:
    """A transaction of one connection."""

    connection: sqlite3.Connection

    def load(self, rows: pa.Table) -> str:
        for name in rows.column_names:
            check_numbers(rows.column(name), name, infinite=True)
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in rows.column_names)
        marks = ", ".join("?" * rows.num_columns)
        self.connection.execute(f"CREATE TEMP TABLE bf_rows ({names})")
        self.connection.executemany(f"INSERT INTO {_STAGE} VALUES ({marks})", _rows(rows))
        return _STAGE

    def execute(self, statement: str) -> None:
        self.connection.execute(statement)
