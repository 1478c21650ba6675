"""MySQL and MariaDB: rows stream in through PyMySQL."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from tempfile import TemporaryFile
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
from sqlglot import exp

from blendfusion.errors import ExecutionError, QueryError
from blendfusion.redaction import without_secrets
from blendfusion.services.sources.database import Column, missing_library, table_batch
from blendfusion.services.sources.mysql_values import MysqlTransaction, stored_type
from blendfusion.services.sources.places import Place
from blendfusion.services.sources.snapshots import Snapshots
from blendfusion.services.sources.table_changes import StoredType

_COLUMNS = (
    "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, NUMERIC_PRECISION, NUMERIC_SCALE, COLUMN_COMMENT, "
    "CHARACTER_SET_NAME, CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s "
    "ORDER BY ORDINAL_POSITION"
)
_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_SHAPES = {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"}
_SHAPES |= {"multipolygon", "geometrycollection", "geomcollection"}
_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
_LONGEST_SORTED = 255
"""The characters by which the database sorts: it takes 1024 bytes of a text for the whole."""


class MysqlDatabase(Snapshots):
    """A database of a server of MySQL or MariaDB. Each scan has a connection."""

    dialect = "mysql"

    def __init__(self, place: Place, read_only: bool) -> None:
        try:
            import pymysql
        except ImportError as problem:
            raise missing_library("pymysql") from problem
        self.place, self.is_read_only = place, read_only
        self._driver = pymysql
        parts = urlsplit(place.location)
        self._arguments = {
            "host": parts.hostname or "localhost",
            "port": parts.port or 3306,
            "user": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "database": unquote(parts.path.strip("/")) or None,
            "unix_socket": dict(parse_qsl(parts.query)).get("unix_socket"),
        }
        found = self._rows("SELECT DATABASE()")[0][0]
        if found is None:
            raise QueryError(
                f"'{place.shown}' names no database", hint="mysql://user@host/shop names shop."
            )
        self.default_schema = str(found)

    def _connect(self, *, writes: bool = False) -> Any:
        connection = self._driver.connect(
            **{name: value for name, value in self._arguments.items() if value is not None},
            charset="utf8mb4",
            autocommit=True,
        )
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES'")
            if not writes:
                cursor.execute("SET SESSION TRANSACTION READ ONLY")
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver.MySQLError as problem:
            text = without_secrets(str(problem.args[-1] if problem.args else problem))
            kind = QueryError if "connect" in text else ExecutionError
            raise kind(f"MySQL, '{self.place.shown}': {text}") from None

    def _rows(self, query: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        with (
            self._errors(),
            closing(self._connect()) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(query, tuple(values))
            return list(cursor.fetchall())

    def schemas(self) -> Sequence[str]:
        own = ("information_schema", "mysql", "performance_schema", "sys")
        return [name for (name,) in self._rows("SHOW DATABASES") if name not in own]

    def tables(self, schema: str) -> Sequence[str]:
        query = (
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s ORDER BY 1"
        )
        return [name for (name,) in self._rows(query, [schema])]

    def columns(self, schema: str, table: str) -> Sequence[Column]:
        listed = self._rows(_COLUMNS, [schema, table])
        doubtful = [row[0] for row in listed if row[2] == "tinyint(1)" or row[1] == "time"]
        odd = self._odd(schema, table, doubtful, {row[0]: row[1] for row in listed})
        return [_column(row, is_odd=row[0] in odd) for row in listed]

    def _odd(
        self, schema: str, table: str, names: Sequence[str], kinds: dict[str, str]
    ) -> set[str]:
        """The columns of truth with other numbers than 0 and 1, and of times beyond a day."""
        if not names:
            return set()
        tests = []
        for name in names:
            here = exp.column(exp.to_identifier(name, quoted=True)).sql(dialect="mysql")
            wrong = f"{here} NOT BETWEEN '00:00:00' AND '23:59:59.999999'"
            tests.append(f"MAX({wrong if kinds[name] == 'time' else f'{here} NOT IN (0, 1)'})")
        place = exp.table_(table, db=schema, quoted=True).sql(dialect="mysql")
        (seen,) = self._rows(f"SELECT {', '.join(tests)} FROM {place}".replace("%", "%%"))
        return {name for name, is_odd in zip(names, seen, strict=True) if is_odd}

    def begin_reading(self, *, scans: int) -> MysqlReading:
        with self._errors():
            return MysqlReading(self._connect(), self, is_alone=scans == 1)

    def stored_type(self, kind: pa.DataType, *, is_key: bool) -> StoredType | None:
        return stored_type(kind, is_key=is_key)

    @contextmanager
    def transaction(self) -> Iterator[MysqlTransaction]:
        with (
            self._errors(),
            closing(self._connect(writes=True)) as connection,
            connection.cursor() as cursor,
        ):
            connection.autocommit(False)
            yield MysqlTransaction(cursor)
            connection.commit()

    def close(self) -> None:
        pass


class MysqlReading:
    """A transaction of one connection, which has one result at a time. One scan alone streams; of
    several, each result is kept in a file at first. A scan that comes while one streams has a
    connection, and a state, of its own."""

    keeps_writers_out = False

    def __init__(self, connection: Any, database: MysqlDatabase, *, is_alone: bool) -> None:
        self._connection, self._database, self._is_alone = connection, database, is_alone
        self._lock = Lock()
        _begin(connection)

    def batches(self, query: str, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        if not self._is_alone:
            yield from self._read_stored(query, schema, rows)
        elif self._lock.acquire(blocking=False):
            try:
                yield from self._fetch(self._connection, query, schema, rows)
            finally:
                self._lock.release()
        else:
            with closing(self._database._connect()) as connection:
                _begin(connection)
                yield from self._fetch(connection, query, schema, rows)

    def _read_stored(self, query: str, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        with TemporaryFile() as file:
            with self._lock, pa.ipc.new_stream(file, schema) as stored:
                for batch in self._fetch(self._connection, query, schema, rows):
                    stored.write_batch(batch)
            file.seek(0)
            yield from pa.ipc.open_stream(file)

    def _fetch(
        self, connection: Any, query: str, schema: pa.Schema, rows: int
    ) -> Iterator[pa.RecordBatch]:
        reading = [pa.int64() if f.type == pa.bool_() else f.type for f in schema]
        with self._database._errors():
            cursor = connection.cursor(self._database._driver.cursors.SSCursor)
            try:
                cursor.execute(query)
                while found := cursor.fetchmany(rows):
                    yield table_batch([tuple(map(_read, row)) for row in found], schema, reading)
            except GeneratorExit:
                connection.close()  # else the driver would read the rest
                raise
            cursor.close()

    def close(self) -> None:
        if self._connection.open:
            self._connection.close()


def _begin(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


def _read(value: object) -> object:
    """A value of the driver as Arrow takes it: a time of the day is no duration, and a date that is
    none, such as 0000-00-00, comes as a text."""
    if isinstance(value, datetime.timedelta):
        return (datetime.datetime.min + value).time()
    return None if isinstance(value, str) and value.startswith("0000-00-00") else value


def _column(row: tuple[Any, ...], *, is_odd: bool) -> Column:
    name, kind, full, digits, scale, comment, letters, length = row
    here = exp.column(exp.to_identifier(name, quoted=True))
    if full == "tinyint(1)" and not is_odd:
        return Column(name, pa.bool_(), "boolean", comment=comment)
    if kind in _INTEGERS:
        sign = "uint" if "unsigned" in full else "int"
        arrow = getattr(pa, f"{sign}{_INTEGERS[kind]}")()
        return Column(name, arrow, "number", comment=comment)
    if kind == "year":
        number = exp.Add(this=here, expression=exp.Literal.number(0))  # else 24 is 2024
        return Column(name, pa.int16(), "number", comment=comment, compared=exp.paren(number))
    if kind == "decimal":
        assert digits is not None
        wide = pa.decimal128 if digits <= 38 else pa.decimal256
        return Column(name, wide(digits, scale or 0), "number", comment=comment)
    if kind in ("float", "double"):
        compared = "float" if kind == "double" else "other"
        return Column(name, pa.float64(), compared, comment=comment)  # type: ignore[arg-type]
    if kind in ("date", "datetime", "timestamp"):
        arrow = (
            pa.date32()
            if kind == "date"
            else pa.timestamp("us", "UTC" if kind == "timestamp" else None)
        )
        compared = "date" if kind == "date" else "other"
        return Column(name, arrow, compared, is_exact=False, comment=comment)  # type: ignore[arg-type]
    if kind == "time" and not is_odd:
        return Column(name, pa.time64("us"), comment=comment)
    if kind in _SHAPES:
        return Column(name, pa.string(), read=exp.func("ST_AsText", here), comment=comment)
    if kind in _BYTES or kind == "bit":
        return Column(name, pa.binary(), comment=comment)
    if kind in _TEXTS:
        return Column(
            name,
            pa.string(),
            "text",
            is_exact=False,
            comment=comment,
            is_sortable=length <= _LONGEST_SORTED,
            has_all_letters=letters == "utf8mb4",
        )
    return Column(name, pa.string(), read=exp.cast(here, "CHAR"), is_exact=False, comment=comment)
