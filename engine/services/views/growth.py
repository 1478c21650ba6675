"""Tables that only grow, as the user says: a refresh reads their new rows alone.

The rows so far lie beside the view, a file for each reading that found new ones, and the query
reads these. A row counts as new where its mark, the value of one column, is above all before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from blendfusion.errors import QueryError
from blendfusion.language.query_text.query_tree import Reader, Select
from blendfusion.language.query_text.tokenizer import sql_of
from blendfusion.places.whole_file import replacing
from blendfusion.services.views.folder import escape
from blendfusion.udfs.declare.arguments import quoted_name, sql_string

if TYPE_CHECKING:
    from blendfusion.services.views.registered_tables import RegisteredTables

FORM = (
    "WITH (grows = 'shop.reviews.id'): the table, and a column that grows with each new row; "
    "WITH (format = 'lance'): where the rows are kept."
)


def growing_tables(text: str) -> dict[str, str]:
    """The columns that grow, by their tables. Raises QueryError for a text that names none.

    >>> growing_tables("shop.reviews.id, t.at")
    {'shop.reviews': 'id', 't': 'at'}
    """
    found = {}
    for path in text.split(","):
        table, _, column = path.strip().rpartition(".")
        if not table or not column:
            raise QueryError(f"'{path.strip()}' names no column of a table", hint=FORM)
        found[table] = column
    return found


class GrownTables:
    """The rows of the growing tables of one view, in its folder."""

    def __init__(
        self, session: RegisteredTables, view: str, folder: Path, columns: Mapping[str, str]
    ) -> None:
        self._session, self._folder, self._columns = session, folder, columns
        self._names = {table: f"{table} beside {view}" for table in columns}

    def clear(self) -> None:
        """Forget the rows so far."""
        for table in self._columns:
            shutil.rmtree(self._place(table), ignore_errors=True)

    def _place(self, table: str) -> Path:
        return self._folder / f"rows-of-{escape(table)}"

    @contextmanager
    def tables(self) -> Iterator[None]:
        """Read the new rows; within this context, the rows so far are tables of the session. Raises
        QueryError for a table or a column that is not there, and for rows without a mark."""
        for table, column in self._columns.items():
            self._read(table, column)
        own = {t: quoted_name(name) for t, name in self._names.items()}
        try:
            for table, name in own.items():
                self._session.register_parquet(name, str(self._place(table)))
            yield
        finally:
            for name in own.values():
                self._session.deregister_table(name)

    def names_of(self, inputs: Mapping[str, str | None]) -> dict[str, str | None]:
        """The digests of tables, with the names of growing tables for their rows so far."""
        tables = {name: table for table, name in self._names.items()}
        return {tables.get(name, name): digest for name, digest in inputs.items()}

    def within(self, query: str) -> str:
        """The query about the rows so far. Raises QueryError for a growing table that it does not
        read."""
        reader, edits, left = Reader(query), [], {*self._columns}
        for start, end, alias in _tables_of(reader) if self._columns else ():
            path = [reader.name(at) for at in range(start, end, 2)]
            table = ".".join(path)
            if table in self._columns:
                left.discard(table)
                text = quoted_name(self._names[table])
                edits.append((start, end, text if alias else f"{text} AS {quoted_name(path[-1])}"))
        if left:
            raise QueryError(f"the query reads no table '{min(left)}', which is to grow", hint=FORM)
        return sql_of(reader.edit(edits)) if edits else query

    def _read(self, table: str, column: str) -> None:
        """Keep the rows of a table that are above its mark; all rows where its columns changed, or
        a file is damaged."""
        place, session = self._place(table), self._session
        path, quoted = ".".join(map(quoted_name, table.split("."))), quoted_name(column)
        schema = (
            session.sql(f"SELECT * FROM {path} LIMIT 0", read_only=True).to_arrow_table().schema
        )
        if column not in schema.names:
            raise QueryError(f"the table {table} has no column '{column}'", hint=FORM)
        files = sorted(place.glob("*.parquet"))
        if any(_columns_of(file) != schema.remove_metadata() for file in files):
            shutil.rmtree(place)
            files = []
        mark = _mark(files[-1], column) if files else None
        above = "" if mark is None else f" WHERE {quoted} > {mark} OR {quoted} IS NULL"
        text = f"SELECT * FROM {path}{above} ORDER BY {quoted}"
        rows = session.sql(text, read_only=True).to_arrow_table().replace_schema_metadata(None)
        missing = rows.column(column).null_count
        if pa.types.is_floating(rows.column(column).type):  # nothing is above NaN or infinity
            missing = len(rows) - (pc.sum(pc.is_finite(rows.column(column))).as_py() or 0)
        if missing:
            raise QueryError(
                f"{missing:,} rows of {table} have no {column}",
                hint="Name a column that grows with each new row, or leave WITH (grows = …) out.",
            )
        if rows.num_rows or not files:
            place.mkdir(exist_ok=True, mode=0o700)
            with replacing(place / f"{len(files):08}.parquet") as part:
                os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
                pq.write_table(rows, part)


def _columns_of(file: Path) -> pa.Schema | None:
    """The columns of a file; None for one that is damaged."""
    with suppress(OSError, pa.ArrowException):
        return pq.read_schema(file).remove_metadata()
    return None


def _mark(last: Path, column: str) -> str | None:
    """The highest mark of the rows so far, as SQL, which is in the ``last`` file; None without
    rows."""
    highest: Any = pc.max(pq.read_table(last, columns=[column]).column(0))
    value = highest.as_py()
    if value is None:
        return None
    if isinstance(value, int | float):
        return str(value)
    return sql_string(highest.cast(pa.string()).as_py())


def _tables_of(reader: Reader) -> Iterator[tuple[int, int, bool]]:
    """The first tokens of the tables that a query reads, the tokens behind them, and whether they
    have an alias."""
    for query, scope in reader.scopes():
        hidden = {reader.name(common.name) for common in (*scope.common, *query.common)}
        for branch in query.branches:
            for source in reader.sources(branch) if isinstance(branch, Select) else ():
                if source.kind == "table" and reader.name(source.start) not in hidden:
                    yield source.start, source.end, source.alias is not None
