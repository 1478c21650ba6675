"""The book of usage in the PostgreSQL of a shared store."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import RLock
from typing import Any

import psycopg

from blendfusion.errors import ExecutionError
from blendfusion.models.protocol.forks import INHERITED
from blendfusion.models.stores.address import clean_message, without_secrets
from blendfusion.services.usage.book import Statements, UsageBook

_WAIT_SECONDS = 60
_PREFIX = "blendfusion_1_"
"""Has the version of the columns, so that two versions of BlendFusion share no table."""
_LOCK = 0x4246_5553
"""The number of the lock that a transaction of a book holds."""
_COUNTS = "calls bigint, prompt_tokens bigint, completion_tokens bigint"
_BEGIN = f"""
BEGIN;
SELECT pg_advisory_xact_lock({_LOCK});
DO $$ BEGIN
IF to_regclass('{_PREFIX}spent') IS NULL THEN
  CREATE TABLE IF NOT EXISTS {_PREFIX}usage (day text, model text, question text, "user" text,
    number bigint, cached bigint, failed bigint, requests bigint, prompt_tokens bigint,
    completion_tokens bigint, seconds double precision, cost double precision);
  CREATE INDEX IF NOT EXISTS {_PREFIX}usage_days ON {_PREFIX}usage (day);
  CREATE TABLE IF NOT EXISTS {_PREFIX}spent (day text, "user" text, number bigint, {_COUNTS},
    seconds double precision, cost double precision);
  CREATE INDEX IF NOT EXISTS {_PREFIX}spent_days ON {_PREFIX}spent (day);
END IF;
END $$"""
"""One message, as the server may be far."""


class _Statements(Statements):
    def add(self, table: str, keys: Mapping[str, object], amounts: Mapping[str, object]) -> None:
        """As ``Statements.add``, in one message."""
        place, row = f"{self.prefix}{table}", {**keys, **amounts}
        changes = ", ".join(f"{name} = {name} + ?" for name in amounts)
        same = " AND ".join(f'"{name}" = ?' for name in keys)
        names = ", ".join(f'"{name}"' for name in row)
        values = ", ".join(f"CAST(? AS {_type_of(value)})" for value in row.values())
        self.run(
            f"WITH changed AS (UPDATE {place} SET {changes} WHERE {same} RETURNING 1) "
            f"INSERT INTO {place} ({names}) SELECT {values} WHERE NOT EXISTS (SELECT FROM changed)",
            [*amounts.values(), *keys.values(), *row.values()],
        )


def _type_of(value: object) -> str:
    if isinstance(value, str):
        return "text"
    return "bigint" if isinstance(value, int) else "double precision"


class PostgresBook(UsageBook):
    """The book in the database at ``url``. A transaction holds one lock of the server: no two
    change the book at a time, whatever machine they are on."""

    def __init__(
        self, url: str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        super().__init__(None, clock=clock)
        self._url = url
        self._held: list[psycopg.Connection[tuple[Any, ...]]] = []
        """The connection, if it is open."""
        weakref.finalize(self, _close_all, self._held)

    @property
    def is_shared(self) -> bool:
        return True

    @contextmanager
    def writing(self) -> Iterator[Statements]:
        with self._lock:
            try:
                connection = self._begin()
                yield _Statements(_run_in(connection), _PREFIX)
                connection.commit()
            except psycopg.Error as problem:
                self.close()
                text = clean_message(problem, self._url)
                place = without_secrets(self._url)
                raise ExecutionError(f"the book of usage, in '{place}': {text}") from problem
            except BaseException:
                self.close()
                raise

    _reading = writing

    def _begin(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection in a transaction that holds the lock. One that the server has closed
        meanwhile is replaced."""
        for held in self._held:
            try:
                held.execute(_BEGIN)
                return held
            except psycopg.OperationalError:
                break
        self.close()
        made = psycopg.connect(
            self._url,
            autocommit=True,  # the transaction has a beginning of its own
            connect_timeout=_WAIT_SECONDS,
            application_name="blendfusion",
        )
        self._held.append(made)
        made.prepare_threshold = None  # a pool of connections may lie between
        made.execute(_BEGIN)
        return made

    def after_fork(self) -> None:
        """In a new process: the connection is its parent's."""
        self._lock = RLock()
        INHERITED.extend(self._held)
        self._held.clear()

    def close(self) -> None:
        """Close the connection until the book is next used: what it has not committed is undone."""
        with self._lock:
            _close_all(self._held)


def _close_all(connections: list[psycopg.Connection[tuple[Any, ...]]]) -> None:
    while connections:
        connections.pop().close()


def _run_in(connection: psycopg.Connection[tuple[Any, ...]]) -> Callable[..., Any]:
    def run(query: str, values: Sequence[object] = ()) -> Any:
        return connection.execute(query.replace("?", "%s"), values)  # type: ignore[arg-type,unused-ignore]

    return run
