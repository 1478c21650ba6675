"""Hands model calls made on DataFusion worker threads to the caller's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Serve(Protocol):
    """Does work on some thread, and returns its result or raises its exception."""

    def __call__(self, work: Callable[[], T]) -> T: ...


def directly(work: Callable[[], T]) -> T:
    """On the thread that calls."""
    return work()
