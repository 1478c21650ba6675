"""Writes the rows of frames to tables of attached databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from blendfusion.errors import ArgumentError, QueryError, close_matches
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.services.sources.attachment import Attachment
from blendfusion.services.sources.catalog import RemoteSchema
from blendfusion.services.sources.database import Column
from blendfusion.services.sources.fit_values import (
    check_key,
    fit,
    is_fit,
    is_number,
    plain_type,
)
from blendfusion.services.sources.table_changes import MODES, Mode, TableChange

if TYPE_CHECKING:
    from blendfusion.frame import Frame


@dataclass(frozen=True, slots=True)
class WriteReport:
    """The rows that were written to a table."""

    table: str
    rows: int

    def __str__(self) -> str:
        rows = "1 row was" if self.rows == 1 else f"{self.rows:,} rows were"
        return f"{rows} written to {self.table}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Destination:
    """A table of an attached database, which may not exist yet."""

    attachment: Attachment
    schema: RemoteSchema
    path: tuple[str, str]
    """The names of the schema and the table there."""
    columns: tuple[Column, ...]
    """None for a table that does not exist."""

    @property
    def title(self) -> str:
        return f"{self.attachment.name}.{self.path[1]}"

    def plan(
        self,
        fields: pa.Schema,
        mode: Mode,
        key: Sequence[str],
        *,
        names: Sequence[str] | None = None,
        is_new: bool | None = None,
    ) -> TableWrite:
        """The write of rows with these columns: to the columns ``names`` by their places, or (None)
        by their own names. ``is_new``: the table is made, in place of one that exists. Raises
        QueryError for what cannot be written, before anything is asked."""
        self.check_writable()
        if not len(fields):
            raise QueryError(f"a query without columns cannot be written to {self.title}")
        repeats = [name for name in fields.names if fields.names.count(name) > 1]
        if repeats and names is None:
            raise QueryError(
                f"two columns of the rows are called '{repeats[0]}'", hint="Name them."
            )
        if is_new is None:
            there = {column.name for column in self.columns}
            is_new = not there or (mode == "replace" and self._own_names(fields.names) != there)
        if is_new:
            return self._new_table(fields, mode, key)
        matched = self._columns(fields.names, names)
        kinds = [self._kind(column, field) for column, field in zip(matched, fields, strict=True)]
        keys = self._key(key, [column.name for column in matched])
        columns = tuple((column.name, column.cast_to) for column in matched)
        return TableWrite(self, self._change(mode, keys, columns, is_new=False), tuple(kinds))

    def check_writable(self) -> None:
        """Raise QueryError for a database that is attached for reading only."""
        name = self.attachment.name
        if self.attachment.database.is_read_only:
            raise QueryError(
                f"the database '{name}' is attached for reading only",
                hint=f"Detach it, and session.attach(…, name='{name}', read_only=False), or ATTACH "
                f"'…' AS {name} (READ_WRITE).",
            )

    def _change(
        self,
        mode: Mode,
        key: tuple[str, ...],
        columns: tuple[tuple[str, str], ...],
        *,
        is_new: bool,
    ) -> TableChange:
        schema, table = self.path
        return TableChange(
            schema=schema,
            table=table,
            mode=mode,
            key=key,
            columns=columns,
            exists=bool(self.columns),
            is_new=is_new,
        )

    def _new_table(self, fields: pa.Schema, mode: Mode, key: Sequence[str]) -> TableWrite:
        keys = self._key(key, fields.names)
        found, kinds = [], []
        for field in fields:
            kind = plain_type(field.type)
            stored = self.attachment.database.stored_type(kind, is_key=field.name in keys)
            if stored is None:
                raise QueryError(
                    f"{self.attachment.database.dialect} has no type for column '{field.name}', which "
                    f"is {field.type}",
                    hint=f"{_REMEDIES.get(kind.id, 'Cast it to TEXT: CAST(… AS TEXT)')}.",
                )
            found.append((field.name, stored.name))
            kinds.append(stored.kind)
        return TableWrite(self, self._change(mode, keys, tuple(found), is_new=True), tuple(kinds))

    def _own_names(self, names: Sequence[str]) -> set[str | None]:
        return {None if (c := self._column(name)) is None else c.name for name in names}

    def _column(self, name: str) -> Column | None:
        found = [c for c in self.columns if c.name == name]
        found = found or [c for c in self.columns if c.name.lower() == name.lower()]
        return found[0] if len(found) == 1 else None

    def _columns(self, own: Sequence[str], names: Sequence[str] | None) -> list[Column]:
        there = [column.name for column in self.columns]
        wanted = own if names is None else names or there
        if len(wanted) != len(own):
            raise QueryError(
                f"the query has {len(own)} columns, and {len(wanted)} of {self.title} are written to",
                hint=f"Its columns are {', '.join(there)}.",
            )
        matched = [self._column(name) for name in wanted]
        for name, column in zip(wanted, matched, strict=True):
            if column is None:
                raise QueryError(
                    f"{self.title} has no column '{name}'",
                    hint=close_matches(name, there) or f"Its columns are {', '.join(there)}.",
                )
        found = [column for column in matched if column is not None]
        if len({column.name for column in found}) < len(found):
            raise QueryError(f"a column of {self.title} would be written twice")
        return found

    def _kind(self, column: Column, field: pa.Field) -> pa.DataType:
        kind = plain_type(field.type)
        if pa.types.is_null(field.type):
            return column.type
        if column.is_loose and is_number(kind):
            stored = self.attachment.database.stored_type(kind, is_key=False)
            return column.type if stored is None else stored.kind
        if is_fit(kind, column.type):
            return column.type
        raise QueryError(
            f"column '{column.name}' of {self.title} is {column.type}, and the rows have {field.type} "
            "for it",
            hint=f"Cast it in the query: CAST({field.name} AS …).",
        )

    def _key(self, key: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
        found = []
        for name in key:
            same = [n for n in names if n == name] or [
                n for n in names if n.lower() == name.lower()
            ]
            if len(same) != 1:
                raise QueryError(
                    f"the key '{name}' is no column of the rows",
                    hint=close_matches(name, names) or f"They have {', '.join(names)}.",
                )
            found += same
        return tuple(found)


_REMEDIES = {
    pa.list_(
        pa.null()
    ).id: "Make a text of it, array_to_string(…, ', '), or one row of each, unnest(…)",
    pa.struct([]).id: "Choose its fields: x['name']",
    pa.decimal128(1).id: "Cast it to fewer digits or to another type: CAST(… AS DOUBLE)",
    pa.decimal256(1).id: "Cast it to fewer digits or to another type: CAST(… AS DOUBLE)",
}


@dataclass(frozen=True, slots=True)
class TableWrite:
    """A write that is known to be possible, as far as types tell."""

    destination: Destination
    change: TableChange
    kinds: tuple[pa.DataType, ...]

    def carry_out(self, rows: pa.Table) -> WriteReport:
        """Write the rows, all or none."""
        names = [name for name, _ in self.change.columns]
        arrays = [
            fit(values, kind, name)
            for values, kind, name in zip(rows.columns, self.kinds, names, strict=True)
        ]
        table = pa.table(arrays, names=names)
        if self.change.key:
            check_key(table, self.change.key)
        try:
            self.change.apply(self.destination.attachment.database, table)
        finally:
            self.destination.schema.forget(self.destination.path[1])
        return WriteReport(self.destination.title, len(table))


def write_frame(frame: Frame, name: str, mode: str, key: str | Sequence[str] | None) -> Any:
    """See ``Frame.write_table``: the report; None for a table of no attached database."""
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    destination = destination_of(frame.session, _path_of(name))
    if destination is None:
        return None
    if mode not in MODES:
        raise ArgumentError(
            f"no mode is called {mode!r}", hint=f"There are {', '.join(map(repr, MODES))}."
        )
    if mode == "upsert" and not keys:
        raise ArgumentError("mode='upsert' needs the key that identifies a row", hint="key='id'.")
    if frame.session.options.read_only:
        raise QueryError(f"the session is read-only, and {name} would be written to")
    write = destination.plan(frame.schema(), mode, keys)
    return write.carry_out(frame.to_arrow_table())


def table_exists(session: Any, name: str) -> bool | None:
    """Whether an attached database has a table; None where none has the name in front. Raises
    QueryError for a database that is attached for reading only."""
    destination = destination_of(session, _path_of(name))
    if destination is None:
        return None
    destination.check_writable()
    return bool(destination.columns)


def drop_table(session: Any, name: str) -> None:
    """Delete a table of an attached database, if it is there. Raises QueryError."""
    destination = destination_of(session, _path_of(name))
    if destination is None or not destination.columns:
        return
    destination.check_writable()
    database = destination.attachment.database
    quoted = [
        exp.to_identifier(p, quoted=True).sql(dialect=database.dialect) for p in destination.path
    ]
    try:
        with database.transaction() as transaction:
            transaction.execute(f"DROP TABLE {'.'.join(quoted)}")
    finally:
        destination.schema.forget(destination.path[1])


def _path_of(name: str) -> list[str]:
    """The parts of ``shop."Order lines"``."""
    if not isinstance(name, str):
        raise ArgumentError(f"the name of a table is text, not {type(name).__name__}")
    tree = TokenTree(name)
    is_path = tree.column_end(0) == len(tree.tokens)
    return [tree.name(at) for at in range(0, len(tree.tokens), 2)] if is_path else []


def destination_of(session: Any, path: Sequence[str]) -> Destination | None:
    """The table that a path means; None if it is of no attached database. Raises QueryError for a
    schema that does not exist."""
    if len(path) not in (2, 3):
        return None
    found = [a for n, a in session.attached.items() if n.lower() == path[0].lower()]
    if not found:
        return None
    (attachment,) = found
    default = attachment.database.default_schema
    schemas = attachment.database.schemas()
    schema = default if len(path) == 2 else _alike(path[1], schemas)
    opened = None if schema is None else attachment.catalog.remote_schema(schema)
    if schema is None or opened is None:
        raise QueryError(
            f"the database '{attachment.name}' has no schema '{path[1] if len(path) == 3 else default}'",
            hint=f"Its schemas are {', '.join(schemas)}.",
        )
    table = _alike(path[-1], attachment.database.tables(schema))
    columns = () if table is None else attachment.database.columns(schema, table)
    return Destination(attachment, opened, (schema, table or path[-1]), tuple(columns))


def _alike(name: str, names: Sequence[str]) -> str | None:
    found = [n for n in names if n == name] or [n for n in names if n.lower() == name.lower()]
    return found[0] if len(found) == 1 else None
