"""The offer of a database: its tables, their columns, and the rows of a query."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from blendfusion.errors import ModelNotFound, QueryError
from blendfusion.services.sources.places import Place
from blendfusion.services.sources.snapshots import Reading, Snapshot
from blendfusion.services.sources.table_changes import Writable

Kind = Literal["number", "float", "text", "boolean", "date", "timestamp", "other"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a remote table, and how it is read."""

    name: str
    type: pa.DataType
    """The type of its values here."""
    kind: Kind = "other"
    """How its values compare: ``other`` stays here. ``text`` compares by its bytes."""
    read: exp.Expr | None = None
    """The expression that the query selects for it; None: the column itself."""
    is_exact: bool = True
    """Whether an equality means the same there. If not, equal bytes are equal there, and other
    values may be, too: such a condition is checked again here, and NULL may be read otherwise."""
    comment: str = ""
    cast_to: str = ""
    """The type there, for values that are written as texts; '' for those written as they are."""
    is_loose: bool = False
    """Whether it takes numbers of any type."""
    compared: exp.Expr | None = None
    """The expression that conditions have for it; None: the column itself."""
    is_sortable: bool = True
    """Whether the database sorts by the whole of a text."""
    has_all_letters: bool = True
    """Whether it may be compared with any text; if not, with one of ASCII's letters."""

    @property
    def here(self) -> exp.Expr:
        """The quoted name of the column in a condition."""
        return self.compared or exp.column(exp.to_identifier(self.name, quoted=True))

    @property
    def to_select(self) -> exp.Expr:
        """The expression that a query selects, under the name of the column."""
        name = exp.to_identifier(self.name, quoted=True)
        return exp.column(name) if self.read is None else exp.alias_(self.read, name)


class Database(Writable, Protocol):
    """An attached database. Its methods may be called on several threads at a time."""

    default_schema: str
    """The schema of tables without one."""
    place: Place
    is_read_only: bool

    def schemas(self) -> Sequence[str]: ...

    def tables(self, schema: str) -> Sequence[str]:
        """The tables and views of a schema."""
        ...

    def columns(self, schema: str, table: str) -> Sequence[Column]:
        """The columns of a table, in order; none if there is no such table."""
        ...

    def begin_reading(self, *, scans: int) -> Reading:
        """A state that stays the same, for about ``scans`` scans at a time."""
        ...

    def batches(
        self, query: str, schema: pa.Schema, rows: int, snapshot: Snapshot | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a query, in batches of about ``rows`` rows and of this schema, in a
        snapshot or a state of their own."""
        ...

    def close(self) -> None:
        """Free what it holds; the next query opens it again."""
        ...


def missing_library(package: str) -> ModelNotFound:
    """The error where the library that reads a database is missing."""
    return ModelNotFound(
        f"this database needs the package {package}, which is not installed",
        hint="pip install 'blendfusion[databases]'.",
    )


def changed_type(name: str, problem: Exception) -> QueryError:
    """The error for a value that the type of its column no longer holds."""
    return QueryError(
        f"column '{name}' holds a value of another type than when its table was first read: {problem}",
        hint="DETACH the database, and ATTACH it again.",
    )


def table_batch(
    rows: Sequence[Sequence[object]], schema: pa.Schema, reading: Sequence[pa.DataType]
) -> pa.RecordBatch:
    """Rows of a driver as a batch: each column is read by the type ``reading`` has for it, and then
    cast to its own."""
    arrays = []
    for at, (field, kind) in enumerate(zip(schema, reading, strict=True)):
        try:
            array = pa.array([row[at] for row in rows], kind)
            arrays.append(array if kind == field.type else array.cast(field.type))
        except (pa.ArrowException, OverflowError, UnicodeError) as problem:
            raise changed_type(field.name, problem) from problem
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_FIRST_MOMENT = -9_222_000_000_000_000_000
"""Microseconds before all moments of PostgreSQL; later ones than Arrow has come out below."""
_FIRST_DAY = -2_147_000_000


def _check_moments(name: str, array: pa.Array) -> None:
    """Raise QueryError for infinity among days or moments, which Arrow does not have."""
    kind = array.type
    if kind == pa.date32():
        known, first, last = array.view(pa.int32()), _FIRST_DAY, 2**31 - 1
    elif pa.types.is_timestamp(kind):
        known, last = array.view(pa.int64()), 2**63 - 1
        first = _FIRST_MOMENT if kind.unit == "us" else 1 - last
    else:
        return
    found = pc.min_max(known).as_py()
    if found["min"] is not None and (found["min"] < first or found["max"] == last):
        raise QueryError(
            f"column '{name}' holds infinity, which is no day or moment here",
            hint="Leave such rows out in the database, with a view: … WHERE isfinite(day).",
        )


def _with_one_nan(array: pa.Array) -> pa.Array:
    """Numbers with one NaN: it has a sign, by which DataFusion puts it below all numbers."""
    if not pa.types.is_floating(array.type):
        return array
    is_nan = pc.is_nan(array)
    known = pc.any(is_nan).as_py()
    return pc.if_else(is_nan, pa.scalar(math.nan, array.type), array) if known else array


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of a driver with the types of ``schema``. Raises QueryError for a value that its type
    does not have."""
    arrays = []
    for field, array in zip(schema, batch.columns, strict=True):
        try:
            if isinstance(array, pa.ExtensionArray):
                array = array.storage
            _check_moments(field.name, array)
            array = _with_one_nan(array)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        except pa.ArrowException as problem:
            raise changed_type(field.name, problem) from problem
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
