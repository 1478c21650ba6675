"""PostgreSQL: rows come as Arrow through ADBC's driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Lock
from typing import Any

import pyarrow as pa
from sqlglot import exp

from blendfusion.errors import ExecutionError, QueryError
from blendfusion.redaction import without_secrets
from blendfusion.services.sources.database import Column, Kind, cast_batch, missing_library
from blendfusion.services.sources.fit_values import plain_type
from blendfusion.services.sources.places import Place
from blendfusion.services.sources.snapshots import Snapshots
from blendfusion.services.sources.table_changes import StoredType

_LISTED = (
    "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "
    "ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'v', 'm', 'f', 'p') "
    "AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1"
)
_SCHEMAS = (
    "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname NOT LIKE 'pg\\_%' "
    "AND nspname <> 'information_schema' AND has_schema_privilege(oid, 'USAGE') ORDER BY 1"
)
_COLUMNS = (
    "SELECT a.attname, format_type(t.oid, NULL), format_type(t.oid, a.atttypmod), "
    "coalesce(l.collisdeterministic, true), "
    "coalesce(col_description(c.oid, a.attnum), '') "
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid JOIN pg_catalog.pg_type t ON t.oid = "
    "a.atttypid LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation "
    "WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped "
    "AND c.relkind IN ('r', 'v', 'm', 'f', 'p') ORDER BY a.attnum"
)
_PLAIN: dict[str, tuple[pa.DataType, Kind]] = {
    "boolean": (pa.bool_(), "boolean"),
    "smallint": (pa.int16(), "number"),
    "integer": (pa.int32(), "number"),
    "bigint": (pa.int64(), "number"),
    "real": (pa.float32(), "float"),
    "double precision": (pa.float64(), "float"),
    "text": (pa.string(), "text"),
    "character varying": (pa.string(), "text"),
    "name": (pa.string(), "other"),
    "date": (pa.date32(), "date"),
    "time without time zone": (pa.time64("us"), "other"),
    "timestamp without time zone": (pa.timestamp("us"), "timestamp"),
    "timestamp with time zone": (pa.timestamp("us", "UTC"), "timestamp"),
    "interval": (pa.month_day_nano_interval(), "other"),
    "bytea": (pa.binary(), "other"),
}
"""The types that the driver gives as they are, by their names in PostgreSQL."""
_LISTS = {
    f"{name}[]": kind for name, (kind, _) in _PLAIN.items() if name not in ("name", "interval")
}


class PostgresDatabase(Snapshots):
    """A database of a server of PostgreSQL. Each scan has a connection, and sees one snapshot."""

    dialect = "postgres"
    default_schema = "public"

    def __init__(self, place: Place, read_only: bool) -> None:
        try:
            import adbc_driver_manager
            import adbc_driver_postgresql.dbapi as driver
        except ImportError as problem:
            raise missing_library("adbc-driver-postgresql") from problem
        self.place, self.is_read_only = place, read_only
        self._driver, self._error = driver, adbc_driver_manager.Error
        self._rows("SELECT 1")

    def _connect(self, *, writes: bool = False) -> Any:
        connection = self._driver.connect(self.place.location, autocommit=not writes)
        settings = [
            "SET standard_conforming_strings = on",
            "SET TimeZone = 'UTC'",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY" if not writes else "",
        ]
        with connection.cursor() as cursor:
            for setting in filter(None, settings):
                cursor.execute(setting)
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._error as problem:
            text = without_secrets(str(problem).split("\n")[0])
            kind = QueryError if "failed to connect" in text.lower() else ExecutionError
            raise kind(f"PostgreSQL, '{self.place.shown}': {text}") from None

    def _rows(self, query: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        with (
            self._errors(),
            closing(self._connect()) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(query, tuple(values) or None)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def schemas(self) -> Sequence[str]:
        return [name for (name,) in self._rows(_SCHEMAS)]

    def tables(self, schema: str) -> Sequence[str]:
        return [name for (name,) in self._rows(_LISTED, [schema])]

    def columns(self, schema: str, table: str) -> Sequence[Column]:
        listed = self._rows(_COLUMNS, [schema, table])
        loose = [row[0] for row in listed if row[2] == "numeric"]
        widths = self._widths(schema, table, loose) if loose else {}
        deep = self._deep(schema, table, [row[0] for row in listed if row[1].endswith("[]")])
        return [_column(row, widths.get(row[0]), is_deep=row[0] in deep) for row in listed]

    def _deep(self, schema: str, table: str, names: Sequence[str]) -> set[str]:
        """The arrays that hold arrays: the driver would give their members in one list."""
        if not names:
            return set()
        quoted = (exp.to_identifier(name, quoted=True).sql(dialect="postgres") for name in names)
        tests = ", ".join(f"bool_or(array_ndims({name}) > 1)" for name in quoted)
        place = exp.table_(table, db=schema, quoted=True).sql(dialect="postgres")
        (seen,) = self._rows(f"SELECT {tests} FROM {place}")
        return {name for name, is_deep in zip(names, seen, strict=True) if is_deep}

    def _widths(self, schema: str, table: str, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types of numbers without a declared scale: as wide as the values they hold."""
        tests = ", ".join(_width_tests(name) for name in names)
        place = exp.table_(table, db=schema, quoted=True).sql(dialect="postgres")
        (seen,) = self._rows(f"SELECT {tests} FROM {place}")
        return {name: _fitting(*seen[3 * at : 3 * at + 3]) for at, name in enumerate(names)}

    def begin_reading(self, *, scans: int) -> PostgresReading:
        with self._errors():
            return PostgresReading(self._connect(), self)

    def stored_type(self, kind: pa.DataType, *, is_key: bool) -> StoredType | None:
        return _stored_type(kind)

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        with (
            self._errors(),
            closing(self._connect(writes=True)) as connection,
            connection.cursor() as cursor,
        ):
            yield PostgresTransaction(cursor)
            connection.commit()

    def close(self) -> None:
        pass


class PostgresReading:
    """A snapshot, which one connection holds. Each scan beside its own joins it with another."""

    keeps_writers_out = False

    def __init__(self, holder: Any, database: PostgresDatabase) -> None:
        self._holder, self._database, self._lock = holder, database, Lock()
        with holder.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SELECT pg_export_snapshot()")
            self._name = cursor.fetchone()[0]

    def batches(self, query: str, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        with (
            self._database._errors(),
            self._connection() as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(query)
            for batch in cursor.fetch_record_batch():
                for start in range(0, batch.num_rows, rows):
                    yield cast_batch(batch.slice(start, rows), schema)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        if self._lock.acquire(blocking=False):
            try:
                yield self._holder
            finally:
                self._lock.release()
            return
        with closing(self._database._connect()) as connection:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute(f"SET TRANSACTION SNAPSHOT '{self._name}'")
            yield connection

    def close(self) -> None:
        self._holder.close()


class PostgresTransaction:
    """A transaction of one connection."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def load(self, rows: pa.Table) -> str:
        self._cursor.adbc_ingest("bf_rows", rows, mode="create", temporary=True)
        return "pg_temp.bf_rows"

    def execute(self, statement: str) -> None:
        self._cursor.execute(statement)


_STORED: dict[pa.DataType, StoredType] = {
    pa.bool_(): StoredType("boolean", pa.bool_()),
    pa.int8(): StoredType("smallint", pa.int16()),
    pa.int16(): StoredType("smallint", pa.int16()),
    pa.int32(): StoredType("integer", pa.int32()),
    pa.int64(): StoredType("bigint", pa.int64()),
    pa.uint8(): StoredType("smallint", pa.int16()),
    pa.uint16(): StoredType("integer", pa.int32()),
    pa.uint32(): StoredType("bigint", pa.int64()),
    pa.uint64(): StoredType("numeric(20,0)", pa.decimal128(20, 0)),
    pa.float32(): StoredType("real", pa.float32()),
    pa.float64(): StoredType("double precision", pa.float64()),
    pa.string(): StoredType("text", pa.string()),
    pa.binary(): StoredType("bytea", pa.binary()),
    pa.date32(): StoredType("date", pa.date32()),
    pa.month_day_nano_interval(): StoredType("interval", pa.month_day_nano_interval()),
}
"""The types of new tables."""


def _stored_type(kind: pa.DataType) -> StoredType | None:
    if pa.types.is_list(kind):
        inner = _stored_type(plain_type(kind.value_type))
        is_list = inner is None or inner.name.endswith("[]")
        return (
            None
            if inner is None or is_list
            else StoredType(f"{inner.name}[]", pa.list_(inner.kind))
        )
    if pa.types.is_decimal(kind) and kind.scale >= 0:
        return StoredType(f"numeric({kind.precision},{kind.scale})", kind)
    if pa.types.is_timestamp(kind):
        zone = None if kind.tz is None else "UTC"
        return StoredType("timestamptz" if zone else "timestamp", pa.timestamp("us", zone))
    return StoredType("time", pa.time64("us")) if pa.types.is_time(kind) else _STORED.get(kind)


def _width_tests(name: str) -> str:
    """Whether values are no finite numbers, and the most digits behind and before the point."""
    here = exp.column(exp.to_identifier(name, quoted=True)).sql(dialect="postgres")
    infinite = "('NaN', 'Infinity', '-Infinity')"
    known = f"FILTER (WHERE {here}::text NOT IN {infinite})"
    return (
        f"bool_or({here}::text IN {infinite}), max(scale({here})) {known}, "
        f"max(length(trunc(abs({here}))::text)) {known}"
    )


def _column(row: tuple[Any, ...], width: pa.DataType | None, *, is_deep: bool) -> Column:
    name, kind, full, binary, comment = row
    here = exp.column(exp.to_identifier(name, quoted=True))
    if kind in _PLAIN:
        arrow, compared = _PLAIN[kind]
        return Column(name, arrow, compared, is_exact=binary, comment=comment)
    if kind == "numeric":
        if width is not None and pa.types.is_floating(width):
            return Column(
                name, width, read=exp.cast(here, "DOUBLE"), comment=comment, is_loose=True
            )
        return Column(
            name,
            width or _decimal_type(full),
            "number",
            exp.cast(here, "TEXT"),
            comment=comment,
            is_loose=full == "numeric",
        )
    if is_deep:
        return Column(name, pa.string(), read=exp.cast(here, "TEXT"), comment=comment, cast_to=full)
    if kind in _LISTS:
        return Column(name, pa.list_(_LISTS[kind]), comment=comment)
    is_list = kind.endswith("[]")
    return Column(
        name,
        pa.list_(pa.string()) if is_list else pa.string(),
        read=exp.cast(here, "TEXT[]" if is_list else "TEXT", dialect="postgres"),
        comment=comment,
        cast_to="" if kind == "character" else full,
    )


def _decimal_type(full: str) -> pa.DataType:
    """The type of ``numeric(10,2)``."""
    digits, _, scale = full.partition("(")[2].rstrip(")").partition(",")
    return _decimal(int(digits), int(scale or 0))


def _decimal(digits: int, scale: int) -> pa.DataType:
    scale, digits = max(scale, 0), max(digits, digits - scale, scale)
    if digits <= 38:
        return pa.decimal128(digits, scale)
    return pa.decimal256(digits, scale) if digits <= 76 else pa.float64()


def _fitting(infinite: bool | None, scale: int | None, digits: int | None) -> pa.DataType:
    if infinite:
        return pa.float64()
    wide = (digits or 1) + (scale or 0)
    return _decimal(38, scale or 0) if wide <= 38 else _decimal(wide, scale or 0)
