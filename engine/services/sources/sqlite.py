"""SQLite: files that the standard library reads."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from sqlglot import exp

from blendfusion.errors import ExecutionError, QueryError
from blendfusion.services.sources.database import Column, Kind, changed_type, table_batch
from blendfusion.services.sources.places import Place

_CLASSES = ("integer", "real", "text", "blob")
_TEXT_OF = {pa.date32(), pa.timestamp("us")}
"""The types that are kept as text."""
_DAY = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]"
_TIME = "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"


class SqliteDatabase:
    """A file of SQLite. A column has the type of the values that it holds: SQLite lets any column
    hold any value, whatever it was declared as."""

    dialect = "sqlite"
    default_schema = "main"

    def __init__(self, place: Place, read_only: bool) -> None:
        self.place, self.is_read_only = place, read_only
        with self._errors(), closing(self._connect()) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()

    def _connect(self) -> sqlite3.Connection:
        path = quote(str(Path(self.place.location).absolute()))
        connection = sqlite3.connect(
            f"file:{path}?mode=ro", uri=True, check_same_thread=False, isolation_level=None
        )
        connection.execute("PRAGMA query_only = ON")
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as problem:
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
            held = connection.execute(_held_classes([name for name, _ in declared], table))
            seen = held.fetchone()
        width = len(seen) // len(declared)
        return [
            _column(name, kind.upper(), seen[at * width : (at + 1) * width])
            for at, (name, kind) in enumerate(declared)
        ]

    def batches(self, query: str, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        reading = [pa.string() if f.type in _TEXT_OF else f.type for f in schema]
        reading = [pa.int64() if kind == pa.bool_() else kind for kind in reading]
        with self._errors(), closing(self._connect()) as connection:
            cursor = connection.execute(query)
            while found := cursor.fetchmany(rows):
                self._check_classes(found, schema)
                yield table_batch(found, schema, reading)

    def _check_classes(self, rows: Sequence[Sequence[object]], schema: pa.Schema) -> None:
        for at, field in enumerate(schema):
            if pa.types.is_floating(field.type) and any(isinstance(r[at], str) for r in rows):
                raise changed_type(field.name, ValueError("a text"))

    def close(self) -> None:
        pass


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _held_classes(names: Sequence[str], table: str) -> str:
    """A query for what each column holds: whether values of each storage class, other numbers than
    0 and 1, other texts than dates, and than times."""
    tests = []
    for name in map(_quote, names):
        tests += [f"max(typeof({name}) = '{kind}')" for kind in _CLASSES]
        tests += [
            f"max({name} NOT IN (0, 1))",
            f"max({name} NOT GLOB '{_DAY}' OR date({name}) IS NOT {name})",
            f"max({name} IS NOT NULL AND NOT ({name} GLOB '{_DAY} {_TIME}*' AND length({name}) <= 26 "
            f"AND substr({name}, 20) NOT GLOB '*[^.0-9]*' AND datetime({name}) IS NOT NULL))",
        ]
    return f"SELECT {', '.join(tests)} FROM {_quote(table)}"


def _column(name: str, declared: str, seen: Sequence[int | None]) -> Column:
    held = {kind for kind, there in zip(_CLASSES, seen, strict=False) if there}
    not_boolean, not_date, not_time = (there != 0 for there in seen[len(_CLASSES) :])
    here = exp.column(exp.to_identifier(name, quoted=True))
    if not held:
        kind = _declared_type(declared)
        return Column(name, kind, _kind_of(kind))
    if held == {"integer"}:
        if declared.startswith("BOOL") and not not_boolean:
            return Column(name, pa.bool_(), "boolean")
        return Column(name, pa.int64(), "number")
    if held <= {"integer", "real"}:
        mixed = exp.cast(here, "REAL") if "integer" in held else None
        return Column(name, pa.float64(), "float", mixed)
    if held == {"text"}:
        if declared == "DATE" and not not_date:
            return Column(name, pa.date32(), "date")
        if re.match("DATETIME|TIMESTAMP", declared) and not not_time:
            return Column(name, pa.timestamp("us"), "other")
        return Column(name, pa.string(), "text")
    if held == {"blob"}:
        return Column(name, pa.binary())
    if "blob" in held:
        return Column(name, pa.binary(), read=exp.cast(here, "BLOB", dialect="sqlite"))
    return Column(name, pa.string(), read=exp.cast(here, "TEXT"))


def _declared_type(declared: str) -> pa.DataType:
    """The type of a column without a value: by SQLite's rules of affinity."""
    if declared.startswith("BOOL"):
        return pa.bool_()
    if declared == "DATE":
        return pa.date32()
    if re.match("DATETIME|TIMESTAMP", declared):
        return pa.timestamp("us")
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
