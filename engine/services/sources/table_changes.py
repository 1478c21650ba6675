"""The change of a table by a frame's rows, as statements of one transaction.

The rows go into a temporary table first, so that every mode is a few statements over two tables,
and the database checks them all before the first reader sees one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa
from sqlglot import exp

Mode = Literal["append", "replace", "upsert"]
MODES: tuple[Mode, ...] = ("append", "replace", "upsert")


@dataclass(frozen=True, slots=True)
class StoredType:
    """How a database keeps the values of a type of Arrow."""

    name: str
    """The type in its own words, for CREATE TABLE."""
    kind: pa.DataType
    """The type that its values have before they are sent."""


class Transaction(Protocol):
    """A transaction of a database, which ends with the context that gave it."""

    def load(self, rows: pa.Table) -> str:
        """The name, as SQL, of a temporary table with these rows and names of columns."""
        ...

    def execute(self, statement: str) -> None: ...


class Writable(Protocol):
    """The half of a database that writes."""

    dialect: str
    """Its name for sqlglot."""

    def stored_type(self, kind: pa.DataType, *, is_key: bool) -> StoredType | None:
        """How a new table keeps values of a type; None where it has none for it."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction: it is kept if the context ends well, and undone if not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """The rows that a table gets."""

    schema: str
    table: str
    mode: Mode
    key: tuple[str, ...]
    """The names of the columns that tell rows apart; () for none."""
    columns: tuple[tuple[str, str], ...]
    """The names of the columns that are written, each with its type in the database's own words;
    '' keeps the type that the rows have."""
    exists: bool
    is_new: bool
    """The table is made, in place of one that exists."""

    def apply(self, database: Writable, rows: pa.Table) -> None:
        """Carry the change out, whole or not at all."""
        with database.transaction() as transaction:
            source = transaction.load(rows)
            script = _Script(self, database.dialect, source)
            for statement in script.made_apart() if script.is_apart else script.statements():
                transaction.execute(statement)


@dataclass(frozen=True, slots=True)
class _Script:
    """The statements of a change; ``source`` is the table of the rows."""

    change: TableChange
    dialect: str
    source: str

    def _quote(self, name: str) -> str:
        return exp.to_identifier(name, quoted=True).sql(dialect=self.dialect)

    def _place(self, table: str) -> str:
        return f"{self._quote(self.change.schema)}.{self._quote(table)}"

    def _list(self, names: Sequence[str], before: str = "") -> str:
        return ", ".join(f"{before}{self._quote(name)}" for name in names)

    @property
    def _names(self) -> list[str]:
        return [name for name, _ in self.change.columns]

    @property
    def _others(self) -> list[str]:
        return [name for name in self._names if name not in self.change.key]

    @property
    def is_apart(self) -> bool:
        """MySQL ends a transaction at each CREATE, so that a table is made under another name."""
        return self.change.is_new and self.dialect == "mysql"

    def made_apart(self) -> Iterator[str]:
        mark = secrets.token_hex(4)
        here, new = self._place(self.change.table), self._place(f"bf_new_{mark}")
        yield f"CREATE TABLE {new} ({self._definitions()}) {self._values()}"
        if not self.change.exists:
            yield f"RENAME TABLE {new} TO {here}"
            return
        old = self._place(f"bf_old_{mark}")
        yield f"RENAME TABLE {here} TO {old}, {new} TO {here}"
        yield f"DROP TABLE {old}"

    def statements(self) -> Iterator[str]:
        change, here = self.change, self._place(self.change.table)
        if change.is_new:
            if change.exists:
                yield f"DROP TABLE {here}"
            yield f"CREATE TABLE {here} ({self._definitions()})"
        elif change.mode == "replace":
            yield f"DELETE FROM {here}"
        elif change.mode == "upsert" and self._others:
            yield self._update(here)
        insert = f"INSERT INTO {here} ({self._list(self._names)}) {self._values()}"
        if change.mode == "upsert" and not change.is_new:
            insert += f" WHERE NOT EXISTS (SELECT 1 FROM {here} t WHERE {self._same_key()})"
        yield insert

    def _definitions(self) -> str:
        parts = [f"{self._quote(name)} {kind}" for name, kind in self.change.columns]
        if self.change.key:
            parts.append(f"PRIMARY KEY ({self._list(self.change.key)})")
        return ", ".join(parts)

    def _values(self) -> str:
        values = ", ".join(map(self._value, self._names))
        return f"SELECT {values} FROM {self.source} s"

    def _same_key(self) -> str:
        pairs = (f"t.{self._quote(name)} = {self._value(name)}" for name in self.change.key)
        return " AND ".join(pairs)

    def _value(self, name: str) -> str:
        kind = dict(self.change.columns)[name]
        value = f"s.{self._quote(name)}"
        return f"CAST({value} AS {kind})" if kind and not self.change.is_new else value

    def _update(self, here: str) -> str:
        own = "t." if self.dialect == "mysql" else ""
        changes = ", ".join(f"{own}{self._quote(n)} = {self._value(n)}" for n in self._others)
        if self.dialect == "mysql":
            return f"UPDATE {here} t JOIN {self.source} s ON {self._same_key()} SET {changes}"
        return f"UPDATE {here} AS t SET {changes} FROM {self.source} s WHERE {self._same_key()}"
