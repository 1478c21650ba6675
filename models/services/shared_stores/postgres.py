"""A store in a PostgreSQL database that a team shares."""

from __future__ import annotations

import os
import re
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from blendfusion.errors import OptionError
from blendfusion.models.protocol.forks import INHERITED
from blendfusion.models.services.shared_stores.shared_store import SharedStore, Unreachable
from blendfusion.models.stores.address import clean_message, without_secrets
from blendfusion.models.stores.entry import Row, after, pieces
from blendfusion.models.stores.key import MODEL_BYTES
from blendfusion.models.stores.memory import StoreStats
from blendfusion.types import FinishReason

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

TABLE = "blendfusion_answers_1"
"""Ends with the version of its columns, so that two versions of BlendFusion share no table."""
_ROWS_AT_ONCE = 5_000
_LASTING = re.compile(
    r"password|authentication|does not exist|permission denied|\bssl\b|certificate|pg_hba",
    re.IGNORECASE,
)
"""Words of problems that do not pass by themselves."""
_MAKE = f"""
DO $$ BEGIN
IF to_regclass('{TABLE}') IS NULL THEN
    CREATE TABLE {TABLE} (
        key bytea PRIMARY KEY,
        text bytea,
        finish text NOT NULL,
        logprob double precision,
        used bigint NOT NULL,
        mark bigint NOT NULL
    );
END IF;
END $$"""
"""Users who may only read may not even say CREATE TABLE IF NOT EXISTS."""
_COLUMNS = "key, text, finish, logprob, used, mark"
_INSERT = f"""
INSERT INTO {TABLE} ({_COLUMNS})
SELECT * FROM unnest(%s::bytea[], %s::bytea[], %s::text[], %s::float8[], %s::bigint[], %s::bigint[])
ON CONFLICT DO NOTHING"""
_REFRESH = f"""
UPDATE {TABLE} SET used = %s WHERE key IN
(SELECT key FROM {TABLE} WHERE key = ANY(%s) ORDER BY key FOR UPDATE SKIP LOCKED)"""


class PostgresStore(SharedStore):
    """Answers in the table ``blendfusion_answers_1`` of the database at ``url``, which is made when
    the first answer comes.

    ``url`` is libpq's, ``postgresql://user@host:port/database?sslmode=require``. A password is best
    kept out of it, in PGPASSWORD or ~/.pgpass. The user needs the right to make the table, or to
    read and write it. Nothing is dropped for want of room: see docs/operations.md. Needs the extra
    ``postgres``.
    """

    def __init__(
        self, url: str, *, wait_seconds: float = 30.0, clock: Callable[[], float] = time.time
    ) -> None:
        """Connects to nothing yet. Raises OptionError without the extra, or for a wrong URL."""
        super().__init__(clock)
        self.path = without_secrets(url)
        self._url = url
        self._wait_seconds = wait_seconds
        self._held: list[psycopg.Connection[tuple[Any, ...]]] = []
        """The connection, if it is open."""
        self._second: PostgresStore | None = None
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._held, self._process)
        psycopg = _driver()
        try:
            psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error as problem:
            raise OptionError(
                f"cache={self.path!r} is no address of PostgreSQL: {clean_message(problem, self._url)}",
                hint="Write postgresql://user@host:5432/database",
            ) from None

    @property
    def database_url(self) -> str:
        """The URL with its secrets, for what else lies in the database."""
        return self._url

    def __reduce__(self) -> tuple[object, ...]:
        """A store of the same place, for another process; with its secrets."""
        return PostgresStore, (self._url,)

    def _let_go(self) -> None:
        with self._lock:
            self._discard()
        with self._write_lock:
            if self._second is not None:
                self._second._let_go()

    def _writer(self) -> PostgresStore:
        """Another connection, where this one writes behind those who read."""
        if not self._is_behind:
            return self
        if self._second is None or self._second._url != self._url:
            self._second = PostgresStore(self._url, wait_seconds=self._wait_seconds)
        return self._second

    def _open_writer(self) -> None:
        writer = self._writer()
        with writer._lock:
            writer._on_server(lambda connection: None)

    # --- rows ------------------------------------------------------------------------------------

    def _rows(self, prefix: bytes, keys: Sequence[bytes]) -> Iterable[Row]:
        found: list[Row] = []
        for some in pieces(keys, _ROWS_AT_ONCE):
            query = f"SELECT {_COLUMNS} FROM {TABLE} WHERE key = ANY(%s)"
            found += map(_row, self._read(query, (list(some),)))
        return found

    def _write(self, rows: Sequence[Row]) -> int:
        new = 0
        # In the order of keys: two processes that write the same never wait for each other in turn.
        for some in pieces(sorted({row[0]: row for row in rows}.values()), _ROWS_AT_ONCE):
            columns = [list(column) for column in zip(*some, strict=True)]
            columns[1] = [None if t is None else cast("str", t).encode() for t in columns[1]]
            new += self._change_rows(_INSERT, columns)
        return new

    def _refresh(self, keys: Sequence[bytes], now: int) -> None:
        for some in pieces(keys, _ROWS_AT_ONCE):
            self._change_rows(_REFRESH, (now, list(some)))

    def _drop(self, keys: Sequence[bytes]) -> None:
        self._change_rows(f"DELETE FROM {TABLE} WHERE key = ANY(%s)", (list(keys),))

    def _texts(self, prefix: bytes, most: int) -> list[str]:
        query = (
            f"SELECT text FROM {TABLE} WHERE key >= %s AND key < %s AND text IS NOT NULL LIMIT %s"
        )
        return [_text(row[0]) for row in self._read(query, (prefix, after(prefix), most))]

    def _forget(self, prefix: bytes) -> None:
        query = f"DELETE FROM {TABLE} WHERE key >= %s AND key < %s"
        self._change_rows(query, (prefix, after(prefix)))

    def _stats(self) -> StoreStats:
        query = (
            f"SELECT count(*), count(DISTINCT substr(key, 1, {MODEL_BYTES})), "
            f"pg_total_relation_size('{TABLE}'), min(used), max(used) FROM {TABLE}"
        )
        entries, models, size, oldest, newest = self._read(query, ())[0]
        return StoreStats(entries, models, size, 0, oldest, newest)

    def _pages(self) -> Iterator[Sequence[Row]]:
        last = b""
        query = f"SELECT {_COLUMNS} FROM {TABLE} WHERE key > %s ORDER BY key LIMIT {_ROWS_AT_ONCE}"
        while True:
            with self._lock:
                page = [_row(row) for row in self._read(query, (last,))]
            if not page:
                return
            yield page
            last = page[-1][0]

    # --- the server ------------------------------------------------------------------------------

    def _read(self, query: str, parameters: tuple[object, ...]) -> list[tuple[Any, ...]]:
        return self._on_server(lambda c: c.execute(query, parameters).fetchall())

    def _change_rows(self, query: str, parameters: Sequence[object]) -> int:
        """How many rows a statement has changed."""
        return self._on_server(lambda c: int(c.execute(query, parameters).rowcount), writes=True)

    def _on_server(self, operation: Callable[[Any], T], *, writes: bool = False) -> T:
        """The result of ``operation``. Raises Unreachable, after a second attempt where the server
        has closed the connection meanwhile. Where the server says no to one that ``writes``, it may
        be read all the same: its disk is full, it is a standby, a row is locked."""
        psycopg = _driver()
        for first in (True, False):
            held = bool(self._held)
            try:
                return operation(self._open())
            except psycopg.Error as problem:
                closed = not self._held or self._held[0].broken
                if first and ((held and closed) or _may_go_next_time(problem)):
                    self._discard()
                    continue
                self._discard()
                refused = isinstance(problem, psycopg.errors.InsufficientPrivilege)
                lasting = refused or _LASTING.search(str(problem)) is not None
                readable = refused or (writes and not closed and problem.sqlstate is not None)
                raise Unreachable(
                    self._remedy(problem), readable=readable, lasting=lasting
                ) from None
            except BaseException:  # an interrupt: what the connection is at is not known
                self._discard()
                raise
        raise AssertionError

    def _open(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._process != os.getpid():  # a fork must not use, nor close, its parent's connection
            INHERITED.extend(self._held)
            self._held, self._process = [], os.getpid()
            weakref.finalize(self, _close_all, self._held, self._process)
        if not self._held:
            connection = _driver().connect(
                self._url,
                autocommit=True,
                connect_timeout=max(2, int(self._wait_seconds / 3)),
                application_name="blendfusion",
            )
            self._held.append(connection)
            connection.prepare_threshold = None  # a pool of connections may lie between
            limit = f"SET statement_timeout = {int(self._wait_seconds * 1000)}"
            errors = _driver().errors
            try:  # one way to the server and back
                connection.execute(f"{limit}; {_MAKE}")
            except (errors.UniqueViolation, errors.DuplicateTable):  # another process made it
                connection.execute(limit)
        return self._held[0]

    def _discard(self) -> None:
        _close_all(self._held, self._process)

    def _remedy(self, problem: Exception) -> str:
        psycopg = _driver()
        primary = problem.diag.message_primary if isinstance(problem, psycopg.Error) else None
        # libpq asks whether the server is running
        stated = problem if primary is None else RuntimeError(primary)
        text = clean_message(stated, self._url).rstrip("?")
        if isinstance(problem, psycopg.errors.InsufficientPrivilege):
            return (
                f"{text}. Grant this user SELECT, INSERT, UPDATE and DELETE on {TABLE}, and CREATE "
                "on its schema for the first use"
            )
        if re.search(r"\b(ssl|tls|certificate)\b|sslmode|pg_hba", text, re.IGNORECASE):
            return (
                f"{text}. The server and this address differ in encryption: state it in the address, "
                "?sslmode=require or verify-full (with sslrootcert), or disable for a server without"
            )
        if re.search(r"database .* does not exist", text):
            return f"{text}. Make it (createdb), or name another database at the end of the address"
        if re.search(r"role .* does not exist|permission denied for database", text):
            return f"{text}. Name a user that the server knows, with the right to connect"
        if "password" in text or "authentication" in text:
            return f"{text}. Set PGPASSWORD or ~/.pgpass, and check the user's name"
        if isinstance(problem, psycopg.errors.QueryCanceled):
            return f"{text}. The server is slow, or somebody holds a lock on {TABLE}"
        if isinstance(problem, psycopg.errors.ReadOnlySqlTransaction):
            return f"{text}. Name the server that may be written, not its standby"
        if isinstance(problem, psycopg.errors.DiskFull):
            return f"{text}. Make room on the disk of the server"
        return f"{text}. Check the address, the network, and whether the server runs"


def _close_all(connections: list[psycopg.Connection[tuple[Any, ...]]], process: int) -> None:
    while connections:
        connection = connections.pop()
        if process == os.getpid():
            connection.close()
        else:
            INHERITED.append(connection)


def _may_go_next_time(problem: Exception) -> bool:
    errors = _driver().errors
    return isinstance(problem, errors.DeadlockDetected | errors.SerializationFailure)


def _row(row: tuple[Any, ...]) -> Row:
    key, text, finish, logprob, used, mark = row
    return (
        key,
        None if text is None else _text(text),
        cast("FinishReason", finish),
        logprob,
        used,
        mark,
    )


def _text(text: Any) -> str:
    """A stored text; damage, also by another type of the column, shows in the checksum."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else repr(text)


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as problem:
        raise OptionError(
            "a cache in PostgreSQL needs psycopg", hint="pip install 'blendfusion[postgres]'"
        ) from problem
    return psycopg
