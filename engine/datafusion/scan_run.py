"""The scans of one run of a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from datafusion import DataFrame

T = TypeVar("T")


class ScanRun:
    """The scans of one run. A service overrides it for scans that share a state."""

    def begin(self, frame: DataFrame, begin: Callable[[], T]) -> T:
        """Call ``begin``, which plans a frame of DataFusion and starts it, on this thread."""
        return begin()

    def close(self) -> None:
        """End the run: no more work begins."""
