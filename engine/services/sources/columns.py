"""Columns of answers in tables of attached databases: a change is one transaction there.

A value depends on the columns that its expression reads, and on nothing else. So the distinct rows
of these are read, and written back beside their values: the table needs no key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from blendfusion.errors import QueryError
from blendfusion.files.answer_columns import Compute, are_others
from blendfusion.services.sources.destinations import Destination, destination_of
from blendfusion.services.sources.fit_values import fit, plain_type
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.services.sources.session import Attaching
    from blendfusion.services.sources.table_changes import Transaction

_ROWS, _VALUE, _COUNT = 10_000, "bf_value", "bf_count"


def table_of(session: Attaching, name: str) -> DatabaseColumns | None:
    """The table ``name`` of an attached database; None if there is none. Raises QueryError for a
    database that is attached for reading only, and for one that shows half a change."""
    path = name.split(".")
    found = destination_of(session, path)
    if found is None or not found.columns:
        return None
    found.check_writable()
    if found.attachment.database.dialect == "mysql":
        raise QueryError(
            f"no column can be added to {name}: MySQL shows a new column before it is filled",
            hint="CREATE MATERIALIZED VIEW v AS SELECT *, llm_…(…) AS topic FROM … keeps answers.",
        )
    return DatabaseColumns(session, path, found)


class DatabaseColumns:
    """A table of an attached database of SQLite, DuckDB or PostgreSQL."""

    version = 0

    def __init__(self, session: Attaching, path: list[str], found: Destination) -> None:
        self._session, self._found = session, found
        self._name = ".".join(map(quoted_name, path))
        self._columns = {column.name: column for column in found.columns}
        self.place = f"{found.attachment.database.place.shown} {'.'.join(found.path)}"

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self._found.columns])

    def add(self, field: pa.Field, read: Sequence[str], compute: Compute) -> int:
        stored = self._found.attachment.database.stored_type(plain_type(field.type), is_key=False)
        if stored is None:
            raise QueryError(
                f"{self._found.attachment.database.dialect} has no type for {field.type}",
                hint=f"Cast it: CAST({field.name} AS TEXT).",
            )
        self._check(read)
        rows = self._distinct(read)
        values = fit(self._values(rows.select([*read]), compute), stored.kind, field.name)
        column = f"{self._quote(field.name)} {stored.name}"
        self._change(field.name, rows.select([*read]), values, f"ADD COLUMN {column}")
        return pc.sum(rows[_COUNT]).as_py() or 0

    def refresh(self, field: pa.Field, read: Sequence[str], compute: Compute) -> int:
        self._check(read)
        rows = self._distinct([*read, field.name])
        values = self._values(rows.select([*read]), compute)
        others = pa.array(are_others(rows[field.name], values), pa.bool_())
        changed = rows.filter(others)
        if len(changed):
            kind = self._columns[field.name].type
            new = fit(values.filter(others), kind, field.name)
            self._change(field.name, changed.select([*read]), new)
        return pc.sum(changed[_COUNT]).as_py() or 0

    def show(self) -> None:
        """Nothing to do: a database shows its newest state."""

    def _check(self, read: Sequence[str]) -> None:
        """Raise QueryError for columns whose equal values may be several texts."""
        for name in read:
            column = self._columns[name]
            if column.kind == "text" and not column.is_exact and self._dialect != "sqlite":
                raise QueryError(
                    f"column '{name}' takes several texts as equal, and each may have another answer",
                    hint=f"Read it in the order of its bytes: another collation of '{name}'.",
                )

    @property
    def _dialect(self) -> str:
        return self._found.attachment.database.dialect

    def _distinct(self, names: Sequence[str]) -> pa.Table:
        """The distinct rows of columns, with the number of each."""
        listed = ", ".join(map(quoted_name, names))
        query = f"SELECT {listed}, count(*) AS {_COUNT} FROM {self._name} GROUP BY {listed}"
        rows: pa.Table = self._session.sql(query).to_arrow_table()
        return rows

    def _values(self, rows: pa.Table, compute: Compute) -> pa.ChunkedArray:
        made = [compute(rows.slice(at, _ROWS)) for at in range(0, max(len(rows), 1), _ROWS)]
        return pa.chunked_array(made)

    def _quote(self, name: str) -> str:
        return exp.to_identifier(name, quoted=True).sql(dialect=self._dialect)

    def _change(
        self, column: str, rows: pa.Table, values: pa.ChunkedArray, first: str | None = None
    ) -> None:
        """Write values beside the rows on which they depend, in one transaction. ``first``: what
        changes the table before."""
        database = self._found.attachment.database
        here = ".".join(map(self._quote, self._found.path))
        loaded = pa.table(
            [*(c.cast(plain_type(c.type)) for c in rows.columns), values],
            names=[*(f"bf_{at}" for at in range(rows.num_columns)), _VALUE],
        )
        try:
            with database.transaction() as transaction:
                if first is not None:
                    transaction.execute(f"ALTER TABLE {here} {first}")
                self._update(transaction, here, column, rows.column_names, loaded)
        finally:
            self._found.schema.forget(self._found.path[1])

    def _update(
        self,
        transaction: Transaction,
        here: str,
        column: str,
        names: Sequence[str],
        loaded: pa.Table,
    ) -> None:
        source = transaction.load(loaded)
        change = f"UPDATE {here} SET {self._quote(column)} = s.{_VALUE} FROM {source} s WHERE "
        for nulls in _null_patterns(loaded.select(range(len(names)))):
            conditions = []
            for at, (name, is_null) in enumerate(zip(names, nulls, strict=True)):
                own = self._own(name)
                conditions.append(
                    f"s.bf_{at} IS NULL AND {own} IS NULL" if is_null else f"{own} = s.bf_{at}"
                )
            transaction.execute(change + " AND ".join(conditions))

    def _own(self, name: str) -> str:
        """A column of the table as it was read."""
        found = self._columns[name]
        text = (found.here if found.read is None else found.read).sql(dialect=self._dialect)
        if self._dialect == "sqlite" and found.kind == "text":
            return f"({text}) COLLATE BINARY"
        return text


def _null_patterns(rows: pa.Table) -> list[tuple[bool, ...]]:
    """The combinations of columns that are NULL in a row: an equality finds the rest, by hashes."""
    marks = [pc.is_null(column) for column in rows.columns]
    return sorted(set(zip(*(mark.to_pylist() for mark in marks), strict=True)))
