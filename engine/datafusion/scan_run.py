"""The scans of one run of a query."""

from __future__ import annotations

from collections.abc import Callable
from threading import local
from typing import TypeVar

from datafusion import DataFrame

T = TypeVar("T")


class ScanRun:
    """The scans of one run. A service overrides it for scans that share a state."""

    on_left_out: Callable[[int], None] | None = None
    """Told of words of documents that are in no chunk, while they are read, on any thread."""
    before: Callable[[DataFrame], None] | None = None
    """Told of each frame before it is planned."""

    def begin(self, frame: DataFrame, begin: Callable[[], T]) -> T:
        """Call ``begin``, which plans a frame of DataFusion and starts it, on this thread."""
        if self.before is not None:
            self.before(frame)
        outer, _current.run = _current.run, self
        try:
            return begin()
        finally:
            _current.run = outer

    def close(self) -> None:
        """End the run: no more work begins."""


class _Current(local):
    run: ScanRun | None = None


_current = _Current()


def current_run() -> ScanRun | None:
    """The run of a scan that DataFusion plans now, on this thread; None outside of runs."""
    return _current.run
