"""One run of a query, as the scans inside its plans see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from datafusion import DataFrame

T = TypeVar("T")


class ScanRun:
    """One run. Services give its scans what they have in common."""

    def begin(self, frame: DataFrame, begin: Callable[[], T]) -> T:
        """Begin the work of a frame of DataFusion on the calling thread."""
        return begin()

    def close(self) -> None:
        """End the run: no more work begins."""
