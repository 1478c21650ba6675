"""Connections and cursors of DB-API."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from blendfusion.files.python_values import convert
from blendfusion.frame import Frame
from blendfusion.language.query_text.statements import first_word
from blendfusion.run.reports.trace import Trace
from blendfusion.services.dbapi import errors
from blendfusion.services.dbapi.errors import InterfaceError, NotSupportedError, translate
from blendfusion.services.dbapi.placeholders import number_placeholders
from blendfusion.services.dbapi.types import TypeCode
from blendfusion.session import Session

_WRITING = ("INSERT", "UPDATE", "DELETE", "COPY")
Parameters = Sequence[Any] | Mapping[str, Any]
Row = tuple[Any, ...]


class _Closing:
    """Something that a ``with`` block closes."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Connection(_Closing):
    """A session as DB-API sees it. Every statement takes effect at once: ``commit`` has nothing to
    do, and ``rollback`` undoes nothing."""

    autocommit = True
    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: Session, *, own: bool) -> None:
        self._session, self._own, self._closed = session, own, False
        self._cursors: weakref.WeakSet[Cursor] = weakref.WeakSet()

    @property
    def session(self) -> Session:
        """The session. Raises InterfaceError if the connection is closed."""
        if self._closed:
            raise InterfaceError("the connection is closed")
        return self._session

    def cursor(self) -> Cursor:
        """A new cursor. Raises InterfaceError if the connection is closed."""
        self.session  # noqa: B018 - raises
        made = Cursor(self)
        self._cursors.add(made)
        return made

    def execute(self, operation: str, parameters: Parameters = ()) -> Cursor:
        """A cursor that has run ``operation``."""
        return self.cursor().execute(operation, parameters)

    def commit(self) -> None:
        """Do nothing: statements take effect at once."""
        self.session  # noqa: B018 - raises

    def rollback(self) -> None:
        """Do nothing: what was done stays."""
        self.session  # noqa: B018 - raises

    def close(self) -> None:
        """End the cursors, and the session if it is this connection's own."""
        if self._closed:
            return
        for cursor in list(self._cursors):
            cursor.close()
        self._closed = True
        if self._own:
            self._session.close()


class Cursor(_Closing):
    """One query after the other. Rows are computed as they are fetched: what is not fetched is not
    asked."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.rowcount = -1
        """The rows of the result; -1 as long as not all of them are known."""
        self.lastrowid: int | None = None
        self.description: list[tuple[Any, ...]] | None = None
        self._closed = False
        self._frame: Frame | None = None
        self._batches: Any = None
        self._rows: Iterator[Row] = iter(())
        self._fetched = 0

    @property
    def trace(self) -> Trace:
        """The questions and the spending of the query so far."""
        return Trace() if self._frame is None else self._frame.trace

    def execute(self, operation: str, parameters: Parameters = ()) -> Cursor:
        """Plan a query, and carry out a statement. ``parameters`` are values of ``?`` in order, or
        of ``$name`` by name. Returns the cursor. Raises ProgrammingError for a wrong text."""
        session = self._open_session()
        self._reset()
        with translate():
            if isinstance(parameters, Mapping):
                frame = session.sql(operation, param_values=dict(parameters))
            else:
                values = list(parameters)
                text, kept = operation, values
                if values or "?" in operation:
                    text, kept = number_placeholders(operation, values)
                frame = session.sql(text, param_values=kept or None)
            self._begin(frame, writes=first_word(operation) in _WRITING)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Cursor:
        """Run a statement once for each set of parameters; what they return is dropped.
        ``rowcount`` is that of all together, -1 if one has none."""
        counts = [self.execute(operation, parameters).rowcount for parameters in seq_of_parameters]
        self._reset()
        self.rowcount = -1 if -1 in counts else sum(counts)
        return self

    def _begin(self, frame: Frame, *, writes: bool) -> None:
        schema = frame.schema()
        self._frame = frame
        if writes or not schema.names:
            changed = frame.to_arrow_table()
            self.rowcount = sum(changed.column(0).to_pylist()) if schema.names else -1
            return
        self.description = [
            (f.name, TypeCode(f.type), None, None, None, None, f.nullable) for f in schema
        ]
        self._batches = frame.execute_stream()
        self._rows = self._read()

    def _read(self) -> Iterator[Row]:
        for batch in self._batches:
            table = pa.Table.from_batches([batch.to_pyarrow()])
            columns = convert(table, lambda one: [column.to_pylist() for column in one.columns])
            for row in zip(*columns, strict=True):
                self._fetched += 1
                yield row
        self.rowcount = self._fetched

    def fetchone(self) -> Row | None:
        """The next row; None behind the last one."""
        self._result()
        with translate():
            return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next ``size`` rows (None: ``arraysize``); fewer at the end."""
        self._result()
        with translate():
            return list(islice(self._rows, self.arraysize if size is None else size))

    def fetchall(self) -> list[Row]:
        """The rest of the rows."""
        self._result()
        with translate():
            return list(self._rows)

    def fetch_arrow_table(self) -> pa.Table:
        """The whole result as an Arrow table. Raises InterfaceError behind a fetched row."""
        frame = self._result()
        if self._fetched:
            raise InterfaceError("rows were fetched already: fetch_arrow_table() is all of them")
        with translate():
            table = frame.to_arrow_table()
        self._rows, self.rowcount = iter(()), table.num_rows
        return table

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """The result as a stream of Arrow batches, which are computed as they are read."""
        frame = self._result()
        batches = (batch.to_pyarrow() for batch in self._batches)
        return pa.RecordBatchReader.from_batches(frame.schema(), batches)

    def fetch_df(self) -> Any:
        """The whole result as a pandas frame."""
        return self.fetch_arrow_table().to_pandas()

    def close(self) -> None:
        """End the query: what was not fetched is not asked. ``rowcount`` stays."""
        rows = self.rowcount
        self._reset()
        self.rowcount, self._closed = rows, True

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def nextset(self) -> None:
        """Raises NotSupportedError: a query has one result."""
        raise NotSupportedError("a query has one result")

    def callproc(self, procname: str, parameters: Parameters = ()) -> None:
        """Raises NotSupportedError: there are no procedures."""
        raise NotSupportedError("there are no stored procedures")

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def _open_session(self) -> Session:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        return self.connection.session

    def _result(self) -> Frame:
        self._open_session()
        if self._frame is None or self.description is None:
            raise errors.ProgrammingError("there is no result: execute a query first")
        return self._frame

    def _reset(self) -> None:
        if self._batches is not None:
            self._batches.close()
        self._frame, self._batches, self._rows = None, None, iter(())
        self.description, self.rowcount, self._fetched = None, -1, 0
