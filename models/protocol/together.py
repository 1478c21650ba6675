"""The other questions about the values of a batch, for models that answer several at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from blendfusion.models.protocol.model import Values
from blendfusion.types import Task

Open: TypeAlias = Mapping[Task, Collection[Values]]
"""Questions that will be asked next, each with the values that it is open about."""

_OPEN: ContextVar[Open] = ContextVar("open questions", default={})  # noqa: B039  # never changed


@contextmanager
def asking_beside(others: Open) -> Iterator[None]:
    """Let questions in this block be asked together with ``others``."""
    token = _OPEN.set(others)
    try:
        yield
    finally:
        _OPEN.reset(token)


def open_questions() -> Open:
    """The questions that may be asked together with the present one."""
    return _OPEN.get()
