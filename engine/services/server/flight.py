"""Answers the calls of Arrow Flight SQL."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import flight

from blendfusion.errors import BlendFusionError, BudgetExceeded, QueryError
from blendfusion.frame import Frame
from blendfusion.services.server import catalogs
from blendfusion.services.server.client_watch import watch
from blendfusion.services.server.messages import bare, pack, unpack
from blendfusion.services.server.statements import Busy, Statements
from blendfusion.session import Session
from blendfusion.udfs.declare.call_registry import calls_in

_CREATE, _CLOSE = "CreatePreparedStatement", "ClosePreparedStatement"
_ROWS_AT_ONCE = 32_768
"""The rows of a message at least, where no model is asked."""
_READ_ONLY = "this server only reads: it takes queries, and no statement that changes anything"


class FlightSqlServer(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow ships no types
    """A server over the statements of each user. It listens as soon as it is made."""

    def __init__(self, users: Mapping[str, Statements], location: str, **options: Any) -> None:
        super().__init__(location, **options)
        self._users = users
        self._stops = False

    def shutdown(self) -> None:
        """End the server: queries that run are interrupted, and keep what was answered."""
        self._stops = True
        super().shutdown()

    def _statements(self, context: Any) -> Statements:
        """The statements of the user who calls."""
        caller = context.get_middleware(CALLER)
        return self._users["" if caller is None else caller.user]

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """The schema of a command's rows, and the ticket for them."""
        with _refusals():
            own = self._statements(context)
            name, command = unpack(descriptor.command)
            if name == "CommandStatementQuery":
                schema = plain_schema(own.frame(command.query).schema())
                ticket = pack("TicketStatementQuery", statement_handle=command.query.encode())
            elif name == "CommandPreparedStatementQuery":
                # Other values may be bound to the statement before the rows of these are read.
                held = own.hold(command.prepared_statement_handle)
                ticket = pack(name, prepared_statement_handle=held)
                schema = plain_schema(_frame_of(own, held).schema())
            else:
                schema, ticket = _listing(own.session, name, command)[0], descriptor.command
            endpoint = flight.FlightEndpoint(ticket, [])
            return flight.FlightInfo(schema, descriptor, [endpoint], -1, -1)

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """The schema of a command's rows."""
        return flight.SchemaResult(self.get_flight_info(context, descriptor).schema)

    def do_get(self, context: Any, ticket: Any) -> Any:
        """The rows of a ticket, as they are computed. A client that leaves ends the query."""
        with _refusals():
            own = self._statements(context)
            name, command = unpack(ticket.ticket)
            if name == "TicketStatementQuery":
                frame = own.frame(command.statement_handle.decode())
            elif name == "CommandPreparedStatementQuery":
                frame = _frame_of(own, command.prepared_statement_handle)
            else:
                return flight.RecordBatchStream(_listing(own.session, name, command)[1]())
            schema = plain_schema(frame.schema())
            return flight.GeneratorStream(schema, self._rows(context, own, frame, schema))

    def _rows(
        self, context: Any, own: Statements, frame: Frame, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        def compute() -> Generator[pa.RecordBatch, None, None]:
            stream = frame.execute_stream()
            waits = not calls_in(frame.logical_plan().display_indent())
            with closing(stream):
                for found in together(stream, _ROWS_AT_ONCE if waits else 1):
                    yield in_schema(found, schema)

        def is_left() -> bool:
            return self._stops or bool(context.is_cancelled())

        with _refusals(), own.slot() as served:
            for batch in watch(compute, is_left):
                yield own.count_rows(batch, served)
            if self._stops:
                raise flight.FlightUnavailableError("the server stops; answers so far are kept")
            served.outcome = "closed" if is_left() else "done"

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Prepare a statement, or forget it."""
        with _refusals():
            own = self._statements(context)
            if action.type == _CREATE:
                _, request = unpack(action.body.to_pybytes())
                handle = own.prepare(request.query)
                try:
                    schema = plain_schema(own.frame(request.query).schema())
                    described = schema.serialize().to_pybytes()
                except QueryError:
                    if "?" not in request.query and "$" not in request.query:
                        raise
                    described = b""  # its values decide its types
                yield pack(
                    "ActionCreatePreparedStatementResult",
                    prepared_statement_handle=handle,
                    dataset_schema=described,
                )
            elif action.type == _CLOSE:
                _, request = unpack(action.body.to_pybytes())
                own.release(request.prepared_statement_handle)
            else:
                raise ValueError(f"the action '{action.type}' is not supported")

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """The actions of the server."""
        return [(_CREATE, "keep a statement for values"), (_CLOSE, "forget it")]

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Bind values to a prepared statement. Raises for an update."""
        with _refusals():
            name, command = unpack(descriptor.command)
            if name != "CommandPreparedStatementQuery":
                raise flight.FlightUnauthorizedError(_READ_ONLY)
            rows = reader.read_all()
            if rows.num_rows > 1:
                raise ValueError("a query takes one set of values")
            found = self._statements(context).statement(command.prepared_statement_handle)
            found.values = [column[0].as_py() for column in rows.columns] if rows.num_rows else []
            handle = command.prepared_statement_handle
            answer = bare("DoPutPreparedStatementResult", prepared_statement_handle=handle)
            writer.write(pa.py_buffer(answer))


def _frame_of(own: Statements, handle: bytes) -> Frame:
    found = own.statement(handle)
    return own.frame(found.sql, found.values)


def _listing(session: Session, name: str, command: Any) -> tuple[pa.Schema, Callable[[], pa.Table]]:
    """The schema and the rows of a command about catalogs."""
    with_schema = name == "CommandGetTables" and command.include_schema
    known: Mapping[str, tuple[pa.Schema, Callable[[], pa.Table]]] = {
        "CommandGetCatalogs": (catalogs.CATALOGS, lambda: catalogs.catalogs(session)),
        "CommandGetDbSchemas": (catalogs.SCHEMAS, lambda: catalogs.schemas(session, command)),
        "CommandGetTables": (
            catalogs.tables_schema(with_schema=with_schema),
            lambda: catalogs.tables(session, command),
        ),
        "CommandGetTableTypes": (
            catalogs.TYPES,
            lambda: pa.table({"table_type": ["TABLE", "VIEW"]}, schema=catalogs.TYPES),
        ),
        "CommandGetSqlInfo": (catalogs.INFO, lambda: catalogs.server_info(list(command.info))),
        "CommandGetPrimaryKeys": (catalogs.KEYS, catalogs.KEYS.empty_table),
    }
    if name not in known:
        raise ValueError(f"the command '{name}' is not supported")
    return known[name]


class _Refusal(pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow ships no types
    """A wrong request. Arrow sends a client the traceback of an exception that it can format, with
    the server's paths; of this one it sends the message alone."""

    @property
    def __cause__(self) -> None:
        raise AttributeError


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise the errors of Flight in place of BlendFusion's."""
    try:
        yield
    except BudgetExceeded as problem:
        raise flight.FlightServerError(str(problem)) from None
    except QueryError as problem:
        read_only = problem.message.startswith("read-only")
        kind = flight.FlightUnauthorizedError if read_only else _Refusal
        raise kind(str(problem)) from None
    except BlendFusionError as problem:
        raise flight.FlightServerError(str(problem)) from None
    except Busy:
        raise flight.FlightUnavailableError("too many queries at a time: try again") from None
    except flight.FlightError:
        raise
    except ValueError as problem:
        raise _Refusal(str(problem)) from None
    except Exception as problem:
        raise flight.FlightInternalError(f"{type(problem).__name__}: {problem}") from None


def together(batches: Iterable[Any], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """The batches in groups of at least so many rows: each message costs a client time. Answers of
    a model do not wait for one another: one row is enough for them."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch.to_pyarrow())
        if sum(one.num_rows for one in held) >= rows:
            yield held
            held = []
    if held:
        yield held


def in_schema(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """One batch of the rows of all batches, cast to the types of ``schema``."""
    columns = [
        pa.concat_arrays([batch.column(at).cast(field.type) for batch in batches])
        for at, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with ordinary texts and bytes in place of Arrow's views, which some clients cannot
    read."""
    return pa.schema([field.with_type(_plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


CALLER = "caller"
"""The name of the middleware that knows who calls."""


class _Caller(flight.ServerMiddleware):  # type: ignore[misc]  # pyarrow ships no types
    def __init__(self, user: str) -> None:
        super().__init__()
        self.user = user


class TokenCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]  # pyarrow ships no types
    """Lets calls through that have one of the tokens, each of which is a user's."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        super().__init__()
        self._wanted = {f"Bearer {token}".encode(): user for token, user in tokens.items()}

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> _Caller:
        """The caller. Raises FlightUnauthenticatedError for a call without a token."""
        given = [
            value if isinstance(value, bytes) else value.encode()
            for name, values in headers.items()
            if name.lower() == "authorization"
            for value in values
        ]
        users = [
            user
            for one in given
            for wanted, user in self._wanted.items()
            if hmac.compare_digest(one, wanted)
        ]
        if len({*users}) != 1:
            raise flight.FlightUnauthenticatedError(
                "a call needs the header 'authorization: Bearer TOKEN'"
            )
        return _Caller(users[0])
