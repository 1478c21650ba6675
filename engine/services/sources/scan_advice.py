"""Advice for scans: the work beyond their filter that a database can do for a query.

DataFusion's plan stays as it is and computes all of it again: a scan that follows the advice gives
fewer rows, from which the plan computes the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import Literal, NamedTuple, TypeAlias

from sqlglot import exp

from blendfusion.services.sources.snapshots import Snapshot

Grouping: TypeAlias = Literal["", "distinct", "count", "extremes"]
Key: TypeAlias = tuple[int, frozenset[str]]
"""A scan of a plan: the table, and the columns that it reads."""


class SortKey(NamedTuple):
    """A column that orders rows."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Advice:
    """The rows that a scan needs: all, as far as nothing is said here."""

    conditions: tuple[exp.Expr, ...] = ()
    """The conditions that they meet, in the dialect of the database."""
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    """The number of rows that are needed, the first ones by ``order``."""
    grouping: Grouping = ""
    """``distinct``: one of equal rows. ``count``: one of equal rows with their number, by which it
    is repeated here. ``extremes``: of each group, the least or greatest value of a column."""
    extremes: Mapping[str, str] = field(default_factory=dict)
    """For ``extremes``: min or max, by columns. The other columns make the groups."""


NONE = Advice()


class _Current(local):
    advice: Mapping[Key, Advice] | None = None
    snapshot: Snapshot | None = None


_current = _Current()


@contextmanager
def following(advice: Mapping[Key, Advice], snapshot: Snapshot | None) -> Iterator[None]:
    """Scans that DataFusion plans on this thread within this context follow the advice, and read
    from the snapshot."""
    before = _current.advice, _current.snapshot
    _current.advice, _current.snapshot = advice, snapshot
    try:
        yield
    finally:
        _current.advice, _current.snapshot = before


def advice_for(table: object, columns: frozenset[str]) -> Advice:
    """The advice for a scan that is planned now."""
    return (_current.advice or {}).get((id(table), columns), NONE)


def current_snapshot() -> Snapshot | None:
    """The snapshot for a scan that is planned now; None without one."""
    return _current.snapshot
