"""Keeps DataFusion 55 from optimizing statements that PREPARE stores.

It would simplify them and move their conditions before there are values of their parameters, and
without what BlendFusion does against its bugs. A frame of EXECUTE is optimized as any other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from datafusion import SessionContext

_PASSES = "datafusion.optimizer.max_passes"
_lock = Lock()


@contextmanager
def kept_as_written(context: SessionContext) -> Iterator[None]:
    """Inside the block, statements that are prepared are stored as they are."""
    with _lock:
        SessionContext.sql(context, f"SET {_PASSES} = 0")
        try:
            yield
        finally:
            SessionContext.sql(context, f"SET {_PASSES} = 3")
