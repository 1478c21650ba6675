"""Settings of a DataFusion context that hold for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from datafusion import SessionContext

_TABLES = "datafusion.catalog.information_schema"
"""Without these, DataFusion shows no setting."""
_lock = RLock()


@contextmanager
def setting(context: SessionContext, name: str, value: str) -> Iterator[None]:
    """Inside the block, the setting ``name`` of ``context`` is ``value``, also for its other
    threads. Blocks of several threads follow one another."""
    with _lock:
        before = _value_of(context, name)
        _set(context, name, value)
        try:
            yield
        finally:
            _set(context, name, before)


def _value_of(context: SessionContext, name: str) -> str:
    try:
        rows = SessionContext.sql(context, f"SHOW {name}").collect()
    except Exception:  # a context that a user made without those tables
        _set(context, _TABLES, "true")
        try:
            rows = SessionContext.sql(context, f"SHOW {name}").collect()
        finally:
            _set(context, _TABLES, "false")
    return str(rows[0].column(1)[0])


def _set(context: SessionContext, name: str, value: str) -> None:
    SessionContext.sql(context, f"SET {name} = '{value}'")
