"""DuckDB: files that its own library reads, and gives as Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Lock
from typing import Any

import pyarrow as pa
from sqlglot import exp

from blendfusion.errors import ExecutionError, QueryError
from blendfusion.services.sources.database import Column, Kind, cast_batch, missing_library
from blendfusion.services.sources.fit_values import plain_type
from blendfusion.services.sources.places import Place
from blendfusion.services.sources.snapshots import Snapshots
from blendfusion.services.sources.table_changes import StoredType

_LISTED = (
    "SELECT table_name FROM information_schema.tables "
    "WHERE table_catalog = current_database() AND table_schema = ? ORDER BY table_name"
)
_COLUMNS = (
    "SELECT column_name, data_type, comment FROM duckdb_columns() "
    "WHERE database_name = current_database() AND schema_name = ? AND table_name = ? "
    "ORDER BY column_index"
)
_SPARE = 2
"""Transactions beside those of the scans that are known, for later parts of a query."""
_AS_TEXT = ("BIT", "TIME WITH TIME ZONE", "VARIANT", "GEOMETRY", "UNION", "BIGNUM", "VARINT")
_ZONED = "TIME WITH TIME ZONE"
_MOST = 10**38 - 1
"""The greatest number of ``decimal128``."""


class DuckDatabase(Snapshots):
    """A file of DuckDB, opened once until it is closed; each scan has a cursor."""

    dialect = "duckdb"
    default_schema = "main"

    def __init__(self, place: Place, read_only: bool) -> None:
        try:
            import duckdb
        except ImportError as problem:
            raise missing_library("duckdb") from problem
        self.place, self.is_read_only = place, read_only
        self._driver, self._error, self._lock = duckdb, duckdb.Error, Lock()
        self._commits = Lock()
        """Held by whoever commits, or begins several transactions of one state. Nobody else writes:
        a file of DuckDB has one writer."""
        self._connection: Any = None
        with self._errors():
            self._cursor().close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._error as problem:
            text = str(problem).split("\n")[0]
            kind = QueryError if "IO Error" in text else ExecutionError
            raise kind(f"DuckDB, '{self.place.shown}': {text}") from problem

    def _rows(self, query: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            found: list[tuple[Any, ...]] = self._cursor().execute(query, list(values)).fetchall()
            return found

    def _cursor(self) -> Any:
        with self._lock:
            if self._connection is None:
                place = self.place.location
                self._connection = self._driver.connect(place, read_only=self.is_read_only)
                self._connection.execute("SET TimeZone = 'UTC'")
            return self._connection.cursor()

    def schemas(self) -> Sequence[str]:
        query = (
            "SELECT schema_name FROM duckdb_schemas() "
            "WHERE database_name = current_database() AND NOT internal"
        )
        return sorted({name for (name,) in self._rows(query)} | {self.default_schema})

    def tables(self, schema: str) -> Sequence[str]:
        return [name for (name,) in self._rows(_LISTED, [schema])]

    def columns(self, schema: str, table: str) -> Sequence[Column]:
        listed = self._rows(_COLUMNS, [schema, table])
        if not listed:
            return ()
        wide = self._wide(schema, table, [name for name, kind, _ in listed if kind == "HUGEINT"])
        listed = [(n, "UHUGEINT" if n in wide else kind, note) for n, kind, note in listed]
        read = [_read(name, kind) for name, kind, _ in listed]
        query = exp.select(
            *(
                Column(n, pa.null(), read=r).to_select
                for (n, _, _), r in zip(listed, read, strict=True)
            )
        )
        query = query.from_(exp.table_(table, db=schema, quoted=True)).limit(0)
        with self._errors():
            schema_there = self._cursor().sql(query.sql(dialect="duckdb")).to_arrow_table().schema
        return [
            Column(
                name,
                pa.decimal256(39, 0) if kind == "UHUGEINT" else _type_here(field.type),
                _kind_of(kind),
                by,
                comment=comment or "",
            )
            for (name, kind, comment), by, field in zip(listed, read, schema_there, strict=True)
        ]

    def _wide(self, schema: str, table: str, names: Sequence[str]) -> set[str]:
        """The columns of whole numbers with more digits than ``decimal128`` has, which Arrow shows
        without the last one."""
        if not names:
            return set()
        tests = [f"max({n}) > {_MOST} OR min({n}) < -{_MOST}" for n in map(_quote, names)]
        place = exp.table_(table, db=schema, quoted=True).sql(dialect="duckdb")
        (seen,) = self._rows(f"SELECT {', '.join(tests)} FROM {place}")
        return {name for name, is_wide in zip(names, seen, strict=True) if is_wide}

    def begin_reading(self, *, scans: int) -> DuckReading:
        with self._errors(), self._commits:
            return DuckReading([self._begin() for _ in range(scans + _SPARE)], self)

    def _begin(self) -> Any:
        cursor = self._cursor().begin()
        cursor.execute("SELECT 1 FROM duckdb_tables() LIMIT 1").fetchall()  # the state is this one
        return cursor

    def stored_type(self, kind: pa.DataType, *, is_key: bool) -> StoredType | None:
        name = _stored_name(kind)
        return None if name is None else StoredType(name, kind)

    @contextmanager
    def transaction(self) -> Iterator[DuckTransaction]:
        with self._errors(), closing(self._cursor()) as cursor:
            cursor.begin()
            yield DuckTransaction(cursor)
            with self._commits:
                cursor.commit()

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


class DuckReading:
    """Transactions that began at one time: one for each scan that runs."""

    keeps_writers_out = False

    def __init__(self, cursors: list[Any], database: DuckDatabase) -> None:
        self._free, self._all, self._database = list(cursors), cursors, database

    def batches(self, query: str, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        with self._database._errors():
            cursor = self._free.pop() if self._free else self._database._begin()
            try:
                for batch in cursor.sql(query).to_arrow_reader(rows):
                    yield cast_batch(batch, schema)
            finally:
                self._free.append(cursor)

    def close(self) -> None:
        for cursor in {id(c): c for c in (*self._all, *self._free)}.values():
            cursor.close()


class DuckTransaction:
    """A transaction of one cursor."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def load(self, rows: pa.Table) -> str:
        self._cursor.register("bf_rows", rows)
        return "bf_rows"

    def execute(self, statement: str) -> None:
        self._cursor.execute(statement)


_STORED = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    pa.timestamp("s"): "TIMESTAMP_S",
    pa.timestamp("ms"): "TIMESTAMP_MS",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("ns"): "TIMESTAMP_NS",
    pa.month_day_nano_interval(): "INTERVAL",
}
"""The types of new tables."""


def _stored_name(kind: pa.DataType) -> str | None:
    if pa.types.is_list(kind):
        inner = _stored_name(plain_type(kind.value_type))
        return None if inner is None else f"{inner}[]"
    if pa.types.is_struct(kind):
        fields = [(field.name, _stored_name(plain_type(field.type))) for field in kind]
        known = [f"{_quote(name)} {inner}" for name, inner in fields if inner is not None]
        return f"STRUCT({', '.join(known)})" if len(known) == len(fields) else None
    if pa.types.is_map(kind):
        names = [_stored_name(plain_type(inner)) for inner in (kind.key_type, kind.item_type)]
        return f"MAP({names[0]}, {names[1]})" if None not in names else None
    if pa.types.is_decimal(kind) and kind.precision <= 38 and kind.scale >= 0:
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return "TIMESTAMPTZ" if kind.unit != "ns" else None
    return _STORED.get(kind)


def _quote(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")


def _read(name: str, kind: str) -> exp.Expr | None:
    """The expression that is selected for a column whose type has no form in Arrow."""
    here = exp.column(exp.to_identifier(name, quoted=True))
    if kind.startswith(_AS_TEXT) and not kind.endswith("]"):
        return exp.cast(here, "VARCHAR")
    if kind == "UHUGEINT":  # Arrow gets it as a number with a sign
        return exp.cast(here, "VARCHAR")
    if _ZONED in kind and "'" not in kind and '"' not in kind:
        return exp.cast(here, kind.replace(_ZONED, "VARCHAR"), dialect="duckdb")
    return None


def _type_here(kind: pa.DataType) -> pa.DataType:
    """The type of a column here: texts of an enumeration are texts, and moments are in UTC."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    return kind


def _kind_of(kind: str) -> Kind:
    if kind.startswith("DECIMAL") or kind.endswith("INT") or kind == "INTEGER":
        return "number"
    kinds: dict[str, Kind] = {
        "UINTEGER": "number",
        "DOUBLE": "float",
        "FLOAT": "float",
        "VARCHAR": "text",
        "BOOLEAN": "boolean",
        "DATE": "date",
        "TIMESTAMP": "timestamp",
        "TIMESTAMP WITH TIME ZONE": "timestamp",
    }
    return kinds.get(kind, "other")
