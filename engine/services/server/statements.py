"""The statements of a server: who may run them, how many at a time, and what they were."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from threading import BoundedSemaphore, Lock
from typing import Any
from uuid import uuid4

import pyarrow as pa

from blendfusion.errors import BlendFusionError, QueryError
from blendfusion.frame import Frame
from blendfusion.models.protocol import event_fields as f
from blendfusion.models.protocol.events import log
from blendfusion.services.dbapi.placeholders import number_placeholders
from blendfusion.session import Session
from blendfusion.types import Usage

_MOST_TEXT = 1 << 20
"""The longest query, in characters."""
_MOST_PREPARED = 1000
"""The prepared statements that are kept; those used longest ago go first."""


@dataclass(slots=True)
class PreparedStatement:
    """A prepared statement, and the values that were bound to it last."""

    sql: str
    values: list[Any] = field(default_factory=list)


class Busy(Exception):
    """Too many queries run at the moment."""


@dataclass(slots=True)
class Counts:
    """The counts of a server's work so far."""

    queries: int = 0
    failed: int = 0
    rows: int = 0
    running: int = 0


@dataclass(slots=True)
class Delivery:
    """The rows that a client was sent, and the end of its query."""

    rows: int = 0
    outcome: str = "closed"
    """Set to ``done`` behind the last row."""


class Statements:
    """The queries of all clients of a session."""

    def __init__(self, session: Session, most: int, wait_seconds: float) -> None:
        self.session, self.counts = session, Counts()
        self._prepared: OrderedDict[bytes, PreparedStatement] = OrderedDict()
        self._lock = Lock()
        self._slots, self._wait = BoundedSemaphore(most), wait_seconds
        self._sessions = [session]
        self._user = ""

    def of_user(self, session: Session) -> Statements:
        """The statements of one user, over a session of their own; counts and limits are shared."""
        made = copy(self)
        made.session, made._prepared = session, OrderedDict()
        made._user = session.user
        self._sessions.append(session)
        return made

    @property
    def usage(self) -> Usage:
        """The spending of all users together."""
        return Usage.total(session.ledger.usage for session in self._sessions)

    def frame(self, sql: str, values: list[Any] | None = None) -> Frame:
        """The frame of a query. Raises QueryError for one that does more than read."""
        if len(sql) > _MOST_TEXT:
            raise QueryError(f"a query has at most {_MOST_TEXT:,} characters")
        text, kept = number_placeholders(sql, values) if values else (sql, [])
        try:
            return self.session.sql(text, param_values=kept or None, read_only=True)
        except BlendFusionError as problem:
            self._report("failed", 0.0, problem=problem)
            raise

    def prepare(self, sql: str, values: Sequence[Any] = ()) -> bytes:
        """Keep a statement; returns its handle."""
        handle = uuid4().bytes
        with self._lock:
            self._prepared[handle] = PreparedStatement(sql, [*values])
            while len(self._prepared) > _MOST_PREPARED:
                self._prepared.popitem(last=False)
        return handle

    def statement(self, handle: bytes) -> PreparedStatement:
        """A prepared statement. Raises QueryError if it was closed."""
        with self._lock:
            found = self._prepared.get(handle)
            if found is not None:
                self._prepared.move_to_end(handle)
        if found is None:
            raise QueryError("this prepared statement was closed", hint="Prepare it again.")
        return found

    def hold(self, handle: bytes) -> bytes:
        """The handle of a copy of a prepared statement, whose values stay as they are now. Raises
        QueryError as ``statement``."""
        found = self.statement(handle)
        return self.prepare(found.sql, found.values) if found.values else handle

    def release(self, handle: bytes) -> None:
        """Forget a prepared statement."""
        with self._lock:
            self._prepared.pop(handle, None)

    @contextmanager
    def slot(self) -> Iterator[Delivery]:
        """One of the queries that may run at a time. Raises Busy if none is free for long."""
        if not self._slots.acquire(timeout=self._wait):
            self._report("busy", self._wait)
            raise Busy
        self._count(queries=1, running=1)
        served, began, problem = Delivery(), time.monotonic(), None
        try:
            yield served
        except BaseException as found:
            problem = found
            raise
        finally:
            if problem is not None and not isinstance(problem, GeneratorExit):
                self._count(failed=1)
                served.outcome = "failed"
            self._count(running=-1)
            self._slots.release()
            seconds = time.monotonic() - began
            self._report(served.outcome, seconds, served.rows, problem)

    def _report(
        self, outcome: str, seconds: float, rows: int = 0, problem: BaseException | None = None
    ) -> None:
        """Write a query to the log, with the class of its error alone: texts may have values."""
        fields: dict[str, Any] = {f.OUTCOME: outcome, f.ROWS: rows, f.SECONDS: seconds}
        if self._user:
            fields = {f.USER: self._user, **fields}
        if outcome == "failed":
            fields[f.ERROR] = type(problem).__name__
        log("server", logging.INFO, "request ended", fields)

    def _count(self, **changes: int) -> None:
        with self._lock:
            for name, change in changes.items():
                setattr(self.counts, name, getattr(self.counts, name) + change)

    def count_rows(self, batch: pa.RecordBatch, served: Delivery) -> pa.RecordBatch:
        """Count the rows of a batch."""
        self._count(rows=batch.num_rows)
        served.rows += batch.num_rows
        return batch
