"""The book of usage: what was asked on each day, by model, question and user.

It lies where the answers are stored: an SQLite file beside theirs, or tables of their PostgreSQL.
The table ``spent`` has the totals that budgets over days look at: a batch is entered there before
it is asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from blendfusion.errors import ExecutionError
from blendfusion.models.protocol.forks import INHERITED, watch
from blendfusion.models.stores.sqlite_file import OwnConnection, create_private, is_damage
from blendfusion.redaction import WITHHELD
from blendfusion.types import Usage

if TYPE_CHECKING:
    from blendfusion.run.reports.trace import Trace

_WAIT_SECONDS = 60
_TABLES = """
CREATE TABLE IF NOT EXISTS usage (day TEXT, model TEXT, question TEXT, user TEXT, number INTEGER,
  cached INTEGER, failed INTEGER, requests INTEGER, prompt_tokens INTEGER,
  completion_tokens INTEGER, seconds REAL, cost REAL, PRIMARY KEY (day, model, question, user));
CREATE TABLE IF NOT EXISTS spent (day TEXT, user TEXT, number INTEGER, calls INTEGER,
  prompt_tokens INTEGER, completion_tokens INTEGER, seconds REAL, cost REAL,
  PRIMARY KEY (day, user));
"""
_AMOUNTS = ("number", "calls", "prompt_tokens", "completion_tokens", "seconds", "cost")


@dataclass(frozen=True, slots=True)
class Amounts:
    """The spending that budgets limit; ``number`` is that of values."""

    number: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The usage of one question of a model in one run; ``cost`` is None without a price."""

    model: str
    question: str
    number: int
    cached: int
    failed: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    cost: float | None


_COUNTED = tuple(one.name for one in fields(UsageRow) if one.name not in ("model", "question"))


@dataclass(frozen=True, slots=True)
class Statements:
    """A transaction of a book. Values stand for ``?``."""

    run: Callable[[str, Sequence[object]], Any]
    prefix: str = ""
    """The beginning of the names of its tables."""

    def add(self, table: str, keys: Mapping[str, object], amounts: Mapping[str, object]) -> None:
        """Add amounts to the row of some keys. Nobody else writes meanwhile."""
        changes = ", ".join(f"{name} = {name} + ?" for name in amounts)
        same = " AND ".join(f'"{name}" = ?' for name in keys)
        query = f"UPDATE {self.prefix}{table} SET {changes} WHERE {same}"
        if self.run(query, [*amounts.values(), *keys.values()]).rowcount == 0:
            row = {**keys, **amounts}
            names = ", ".join(f'"{name}"' for name in row)
            query = (
                f"INSERT INTO {self.prefix}{table} ({names}) VALUES ({', '.join('?' * len(row))})"
            )
            self.run(query, list(row.values()))


class UsageBook:
    """The book in a file (None: in memory, for one session). Safe to use from threads and forks."""

    def __init__(
        self, path: Path | None, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.path, self._clock = path, clock
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        watch(self)

    @property
    def is_shared(self) -> bool:
        """Whether other processes have it, too."""
        return self.path is not None

    def today(self, before: int = 0) -> str:
        """The current day in UTC, or the day a number of days earlier."""
        return (self._clock() - timedelta(days=before)).date().isoformat()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self.path is not None:
                create_private(self.path)
            place = ":memory:" if self.path is None else str(self.path)
            found = sqlite3.connect(
                place,
                timeout=_WAIT_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                factory=OwnConnection,
            )
            found.execute("PRAGMA journal_mode = WAL")
            found.execute("PRAGMA synchronous = NORMAL")
            found.executescript(_TABLES)
            self._connection = found
        return self._connection

    def after_fork(self) -> None:
        """In a new process: a connection to a file must not be used, nor closed, in a child."""
        self._lock = RLock()
        if self._connection is not None and self.path is not None:
            INHERITED.append(self._connection)
            self._connection = None

    @contextmanager
    def writing(self) -> Iterator[Statements]:
        """A transaction that no other process writes beside. Raises ExecutionError."""
        with self._lock:
            try:
                connection = self._open()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield Statements(connection.execute)
                    connection.execute("COMMIT")
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
            except (sqlite3.Error, OSError) as problem:
                raise self._error(problem) from problem

    def close(self) -> None:
        """Close the file until it is next used; a book in memory stays."""
        with self._lock:
            if self._connection is not None and self.path is not None:
                self._connection.close()
                self._connection = None

    def enter(self, user: str, rows: Iterable[UsageRow], spent: Amounts) -> None:
        """Add the usage of a run, and what it spent if no budget over days has counted that."""
        day = self.today()
        with self.writing() as statements:
            for row in rows:
                keys = {"day": day, "model": row.model, "question": row.question, "user": user}
                amounts = {name: getattr(row, name) for name in _COUNTED}
                statements.add("usage", keys, amounts)
            add_spent(statements, day, user, spent)

    def rows(self, user: str | None = None) -> list[tuple[object, ...]]:
        """All rows of the table ``usage``; those of one user."""
        with self._reading() as statements:
            query = (
                f"SELECT * FROM {statements.prefix}usage "
                'WHERE CAST(? AS TEXT) IS NULL OR "user" = ? ORDER BY 1, 2, 3, 4'
            )
            return list(statements.run(query, (user, user)))

    @contextmanager
    def _reading(self) -> Iterator[Statements]:
        with self._lock:
            try:
                yield Statements(self._open().execute)
            except (sqlite3.Error, OSError) as problem:
                raise self._error(problem) from problem

    def _error(self, problem: Exception) -> ExecutionError:
        remedy = " (move the file away: a new one is made)" if is_damage(problem) else ""
        return ExecutionError(f"the book of usage, '{self.path}': {problem}{remedy}")


def add_spent(statements: Statements, day: str, user: str, spent: Amounts) -> None:
    """Add to the totals of a user on a day."""
    if spent != Amounts():
        statements.add(
            "spent", {"day": day, "user": user}, {name: getattr(spent, name) for name in _AMOUNTS}
        )


def spent_since(statements: Statements, day: str, user: str | None) -> Amounts:
    """The totals from a day on, of a user or (None) of all."""
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in _AMOUNTS)
    query = (
        f"SELECT {sums} FROM {statements.prefix}spent "
        'WHERE day >= ? AND (CAST(? AS TEXT) IS NULL OR "user" = ?)'
    )
    number, calls, prompt, completion, *rest = statements.run(query, (day, user, user)).fetchone()
    return Amounts(int(number), int(calls), int(prompt), int(completion), *map(float, rest))


def amounts_of(usage: Usage, cost: float | None) -> Amounts:
    """Usage as the amounts that budgets limit."""
    return Amounts(
        usage.values,
        usage.calls,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.seconds,
        cost or 0.0,
    )


def enter_run(book: UsageBook, user: str, trace: Trace, *, hides: bool, counted: bool) -> None:
    """Add the usage of a run. ``hides``: without the words of its questions; ``counted``: a budget
    over days has its spending already. Raises ExecutionError."""
    ledger = trace.ledger
    rows = []
    for (model, question), used in trace.by_question_and_model.items():
        price = None if ledger is None else ledger.prices.of(model)
        rows.append(
            UsageRow(
                model,
                WITHHELD if hides else question,
                used.values,
                used.cached,
                used.failed,
                used.calls,
                used.prompt_tokens,
                used.completion_tokens,
                used.seconds,
                None if price is None else price.of(used),
            )
        )
    spent = Amounts()
    if ledger is not None and not counted:
        spent = amounts_of(ledger.usage, ledger.cost)
    book.enter(user, rows, spent)
