"""UPDATE and DELETE of some rows: a query finds them, and their new values.

It is planned as any other, so that it asks what can matter. DataFusion 55 evaluates a call there
for every row. It deletes all rows where WHERE holds a subquery or is never true, ``id = NULL``, and
it carries EXPLAIN of both statements out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from datafusion import DataFrame, SessionContext

from blendfusion.datafusion.arrow_layouts import convert, plain_batch, plain_schema
from blendfusion.errors import ExecutionError, QueryError
from blendfusion.language.query_text.source_map import within
from blendfusion.prepare.query import Query
from blendfusion.services.updates.row_change import RowChange, row_change

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.prepare.frame_sources import FrameSources

_ROWS = "changed_rows"
_ROW = "row number"
_SQL_TYPES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
}
"""Types to which new values are cast in the query, so that a call is asked for one."""


def with_changes(
    session: FrameSources, query: Query, frame: Frame, *, asks: Callable[[], bool]
) -> Frame:
    """``frame`` of ``query``; if that is an UPDATE or DELETE of some rows of a table in memory, it
    finds them by a query first. Raises QueryError for a clause that DataFusion leaves out, and for
    another table if the statement has calls (``asks``) or subqueries."""
    change = row_change(query.text)
    if change is None:
        return frame
    if change.ignored_clause is not None:
        word = change.tree.word(change.ignored_clause)
        raise change.tree.refusal(
            change.ignored_clause,
            f"there is no {word} here",
            "Name the rows: WHERE id IN (SELECT …).",
        )
    reads = asks() or change.has_query
    if not change.is_known or not (reads or change.chooses):
        return frame
    if _is_in_memory(SessionContext.table(session, change.table)):
        return _Changes(session, query, change).of(frame)
    if not reads:
        return frame
    raise QueryError(
        f"rows of {change.table} cannot be {'deleted' if change.deletes else 'changed'}: it is a "
        "file, a view or a table of another system, not a table in memory",
        hint=f"Make a table of its rows: CREATE TABLE changed AS SELECT … FROM {change.table}.",
    )


def _is_in_memory(table: DataFrame) -> bool:
    """A table whose rows DataFusion can change. It does not say so before it changes some."""
    is_table = table.logical_plan().display_indent().startswith("TableScan: ")
    return is_table and "partition_sizes=" in table.execution_plan().display_indent()


class _Changes:
    """The changes of one statement, of the rows that its table has when it runs."""

    def __init__(self, session: FrameSources, query: Query, change: RowChange) -> None:
        self._session, self._query, self._change = session, query, change
        self._rows = pa.table({})

    def of(self, frame: Frame) -> Frame:
        frame.source = self._find()
        frame.statement = self._carry_out
        frame.renewed = self._find_again
        return frame

    def _current(self) -> pa.Table:
        """The rows of the table, in plain layouts."""
        batches = SessionContext.table(self._session, self._change.table).collect()
        schema = SessionContext.table(self._session, self._change.table).schema()
        plain = plain_schema(schema)
        return pa.Table.from_batches([plain_batch(b, plain) for b in batches], plain)

    def _find(self) -> Frame:
        """The frame of the changed rows: their numbers, and their new values."""
        self._rows = self._current()
        numbered = self._rows.append_column(_ROW, pa.array(np.arange(len(self._rows))))
        given = {*self._query.named_params, *(self._query.param_values or ())}
        alias = self._change.alias
        name = alias if alias.isidentifier() and alias not in given else _ROWS
        text = self._change.query(f"${name}", _ROW, self._sql_type)
        named = {**self._query.named_params, name: self._session.new_table(numbered)}
        before = self._query.respelled
        whole = before.then(text) if before else text
        rows = replace(self._query, text=text.sql, named_params=named, respelled=whole)
        try:
            return rows.plan(self._session)
        except QueryError as problem:
            raise within(problem, text) from None

    def _find_again(self) -> Frame | None:
        """The frame of the changed rows if the table has others by now; None if it has not."""
        return None if self._current().equals(self._rows) else self._find()

    def _sql_type(self, column: str) -> str | None:
        kind = self._rows.schema.field(column).type
        if pa.types.is_decimal(kind):
            return f"DECIMAL({kind.precision}, {kind.scale})"
        return _SQL_TYPES.get(kind)

    def _carry_out(self, found: pa.Table) -> Frame:
        """The frame of the count, once the table has its new rows."""
        if not self._current().equals(self._rows):
            raise ExecutionError(f"the rows of {self._change.table} changed meanwhile")
        chosen = found.column(0).to_numpy()
        if self._change.deletes:
            kept = np.ones(len(self._rows), dtype=bool)
            kept[chosen] = False
            rows = self._rows.filter(pa.array(kept))
        else:
            rows = _with_values(self._rows, chosen, found.drop_columns([found.column_names[0]]))
        if len(found):
            self._replace_by(rows)
        return self._session.new_table(pa.table({"count": pa.array([len(found)], pa.uint64())}))

    def _replace_by(self, rows: pa.Table) -> None:
        try:
            self._write(rows)
        except Exception:
            self._write(self._rows)
            raise

    def _write(self, rows: pa.Table) -> None:
        """Have the table these rows, in one batch: they keep their order."""
        table = self._change.table
        SessionContext.sql(self._session, f"DELETE FROM {table}").collect()
        if len(rows):
            given = self._session.new_table(rows.combine_chunks())
            text = f"INSERT INTO {table} SELECT * FROM ${_ROWS}"
            Query(text, named_params={_ROWS: given}).plan(self._session).collect()


def _with_values(rows: pa.Table, chosen: np.ndarray, values: pa.Table) -> pa.Table:
    """``rows`` in which those at the places ``chosen`` have other ``values`` in some columns."""
    places = np.arange(len(rows))
    places[chosen] = len(rows) + np.arange(len(chosen))
    for name in values.column_names:
        at = rows.schema.get_field_index(name)
        new = convert(values.column(name), rows.schema.field(at).type)
        both = pa.chunked_array([*rows.column(at).chunks, *new.chunks], rows.schema.field(at).type)
        rows = rows.set_column(at, rows.schema.field(at), both.take(pa.array(places)))
    return rows
