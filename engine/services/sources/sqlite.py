"""SQLite: files that the standard library reads."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from sqlglot import exp

from blendfusion.errors import ExecutionError, QueryError
from blendfusion.models.stores.sqlite_file import OwnConnection
from blendfusion.services.sources.database import Column, Kind, table_batch
from blendfusion.services.sources.places import Place
from blendfusion.services.sources.snapshots import Snapshots
from blendfusion.services.sources.sqlite_values import SqliteTransaction, stored_type
from blendfusion.services.sources.table_changes import StoredType

_CLASSES = ("integer", "real", "text", "blob")
_TEXT_OF = {pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")}
"""The types that are kept as text."""
_DAY = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]"
_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(\d+)\)")
_ZONE = "+00:00"
_TIME = "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"


class SqliteDatabase(Snapshots):
    """A file of SQLite. A column has the type of the values that it holds: SQLite lets any column
    hold any value, whatever it was declared as."""

    dialect = "sqlite"
    default_schema = "main"

    def __init__(self, place: Place, read_only: bool) -> None:
        self.place, self.is_read_only = place, read_only
        with self._errors(), closing(self._connect()) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def _connect(self, *, writes: bool = False) -> sqlite3.Connection:
        path = quote(str(Path(self.place.location).absolute()))
        # One that may write undoes what a killed program left, also before it reads.
        mode = "ro" if self.is_read_only else "rw"
        connection = sqlite3.connect(
            f"file:{path}?mode={mode}",
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            factory=OwnConnection,
        )
        if not writes:
            connection.execute("PRAGMA query_only = ON")
        return connection

    def stored_type(self, kind: pa.DataType, *, is_key: bool) -> StoredType | None:
        return stored_type(kind)

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        with self._errors(), closing(self._connect(writes=True)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN IMMEDIATE")
            yield SqliteTransaction(connection)
            connection.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as problem:
            if self.is_read_only and "readonly database" in str(problem):
                raise ExecutionError(
                    f"SQLite, '{self.place.shown}': a program ended while it wrote, and its changes are "
                    "to be undone before anybody reads",
                    hint="Attach it with read_only=False once: SQLite undoes them.",
                ) from problem
            raise ExecutionError(f"SQLite, '{self.place.shown}': {problem}") from problem
        except sqlite3.Error as problem:
            raise QueryError(f"SQLite, '{self.place.shown}': {problem}") from problem

    def schemas(self) -> Sequence[str]:
        return (self.default_schema,)

    def tables(self, schema: str) -> Sequence[str]:
        query = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        with self._errors(), closing(self._connect()) as connection:
            return [name for (name,) in connection.execute(query)]

    def columns(self, schema: str, table: str) -> Sequence[Column]:
        with self._errors(), closing(self._connect()) as connection:
            declared = connection.execute(
                "SELECT name, type FROM pragma_table_info(?)", (table,)
            ).fetchall()
            if not declared:
                return ()
            held = connection.execute(_held_classes(declared, table))
            seen = held.fetchone()
            (encoding,) = connection.execute("PRAGMA encoding").fetchone()
            shape = "SELECT type FROM sqlite_master WHERE name = ?"
            (shape,) = connection.execute(shape, (table,)).fetchone()
        width = len(seen) // len(declared)
        found = [
            _column(name, kind.upper(), seen[at * width : (at + 1) * width])
            for at, (name, kind) in enumerate(declared)
        ]
        return [
            replace(
                column,
                compared=_plain_value(column, kind.upper(), is_view=shape == "view"),
                is_exact=column.kind != "text" or encoding == "UTF-8",
            )
            for column, (_, kind) in zip(found, declared, strict=True)
        ]

    def begin_reading(self, *, scans: int) -> SqliteReading:
        with self._errors():
            connection = self._connect()
            found = SqliteReading(connection, self._errors)
            connection.execute("BEGIN")  # the state is that of the first scan
            return found

    def close(self) -> None:
        pass


class SqliteReading:
    """A transaction of a connection, which all its cursors see."""

    def __init__(
        self, connection: sqlite3.Connection, errors: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._connection, self._errors = connection, errors
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        self.keeps_writers_out = mode != "wal"

    def batches(self, query: str, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        reading = [pa.string() if f.type in _TEXT_OF else f.type for f in schema]
        reading = [pa.int64() if kind == pa.bool_() else kind for kind in reading]
        reading = [pa.float64() if pa.types.is_decimal(kind) else kind for kind in reading]
        with self._errors(), closing(self._connection.cursor()) as cursor:
            cursor.execute(query)
            while found := cursor.fetchmany(rows):
                yield table_batch(found, schema, reading)

    def close(self) -> None:
        self._connection.close()


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _has_zone(declared: str) -> bool:
    return bool(re.fullmatch(r"(DATETIME|TIMESTAMP)( WITH TIME ZONE|TZ)", declared.upper()))


def _decimal(declared: str) -> pa.DataType | None:
    """The type of ``DECIMAL(10,2)``, as far as a DOUBLE keeps all its digits; else None."""
    found = _DECIMAL.fullmatch(declared.upper())
    digits, scale = map(int, found.groups()) if found else (16, 0)
    return pa.decimal128(digits, scale) if scale <= digits <= 15 else None


def _held_classes(declared: Sequence[tuple[str, str]], table: str) -> str:
    """A query for what each column holds: whether values of each storage class, other numbers than
    0 and 1, other texts than dates, and than times, and numbers with more digits than declared; 1
    where the declared type does not ask for it."""
    tests = []
    for name, kind in declared:
        name, decimal = _quote(name), _decimal(kind)
        here = f"replace({name}, '{_ZONE}', '')" if _has_zone(kind) else name
        unzoned = f"{name} NOT GLOB '*{_ZONE}' OR " if _has_zone(kind) else ""
        word = kind.upper()
        tests += [f"max(typeof({name}) = '{kind}')" for kind in _CLASSES]
        tests += [
            "1" if not word.startswith("BOOL") else f"max({name} NOT IN (0, 1))",
            "1"
            if word != "DATE"
            else f"max({name} NOT GLOB '{_DAY}' OR date({name}) IS NOT {name})",
            "1"
            if not re.match("DATETIME|TIMESTAMP", word)
            else f"max({name} IS NOT NULL AND ({unzoned}NOT ({here} GLOB '{_DAY}[ T]{_TIME}*' AND "
            f"length({here}) <= 26 AND substr({here}, 20) NOT GLOB '*[^.0-9]*' AND "
            f"datetime(substr({here}, 1, 19)) IS NOT NULL)))",
            "1"
            if decimal is None
            else f"max({name} <> round({name}, {decimal.scale}) "
            f"OR abs({name}) >= 1e{decimal.precision - decimal.scale})",
        ]
    return f"SELECT {', '.join(tests)} FROM {_quote(table)}"


def _column(name: str, declared: str, seen: Sequence[int | None]) -> Column:
    held = {kind for kind, there in zip(_CLASSES, seen, strict=False) if there}
    not_boolean, not_date, not_time, not_decimal = (there != 0 for there in seen[len(_CLASSES) :])
    here = exp.column(exp.to_identifier(name, quoted=True))
    if not held:
        kind = _declared_type(declared)
        return Column(name, kind, _kind_of(kind), is_loose=_is_loose(declared))
    if held <= {"integer", "real"} and not not_decimal:
        return Column(name, _declared_type(declared), read=exp.cast(here, "REAL"))
    if held == {"integer"}:
        if declared.startswith("BOOL") and not not_boolean:
            return Column(name, pa.bool_(), "boolean")
        return Column(name, pa.int64(), "number", is_loose=_is_loose(declared))
    if held <= {"integer", "real"}:
        mixed = exp.cast(here, "REAL") if "integer" in held else None
        return Column(name, pa.float64(), "float", mixed)
    if held == {"text"}:
        if declared == "DATE" and not not_date:
            return Column(name, pa.date32(), "date")
        if re.match("DATETIME|TIMESTAMP", declared) and not not_time:
            return Column(name, _declared_type(declared), "other")
        return Column(name, pa.string(), "text")
    if held == {"blob"}:
        return Column(name, pa.binary())
    if "blob" in held:
        return Column(name, pa.binary(), read=exp.cast(here, "BLOB", dialect="sqlite"))
    return Column(name, pa.string(), read=exp.cast(here, "TEXT"))


def _plain_value(column: Column, declared: str, *, is_view: bool) -> exp.Expr | None:
    """The expression that compares by its values alone. SQLite converts what is compared with a
    column as the column's declared type says: a text that a number is written in becomes a number.
    A column of a view has the type of one of its parts."""
    keeps = "INT" not in declared and (not declared or re.search("CHAR|CLOB|TEXT|BLOB", declared))
    if not is_view and (column.kind != "text" or keeps):
        return None
    return exp.func("coalesce", column.here, exp.Null())


def _is_loose(declared: str) -> bool:
    """Whether a column keeps any number as it is."""
    others = re.search("INT|CHAR|CLOB|TEXT|BLOB|BOOL|DATE|TIME", declared)
    return others is None and _decimal(declared) is None


def _declared_type(declared: str) -> pa.DataType:
    """The type of a column without a value: by SQLite's rules of affinity."""
    if declared.startswith("BOOL"):
        return pa.bool_()
    if declared == "DATE":
        return pa.date32()
    if re.match("DATETIME|TIMESTAMP", declared):
        return pa.timestamp("us", "UTC" if _has_zone(declared) else None)
    decimal = _decimal(declared)
    if decimal is not None:
        return decimal
    if "INT" in declared:
        return pa.int64()
    if re.search("CHAR|CLOB|TEXT", declared):
        return pa.string()
    if "BLOB" in declared:
        return pa.binary()
    return pa.float64() if re.search("REAL|FLOA|DOUB|NUM|DEC", declared) else pa.string()


def _kind_of(kind: pa.DataType) -> Kind:
    kinds: dict[pa.DataType, Kind] = {
        pa.bool_(): "boolean",
        pa.date32(): "date",
        pa.int64(): "number",
        pa.float64(): "float",
        pa.string(): "text",
    }
    return kinds.get(kind, "other")
