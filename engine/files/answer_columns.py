"""Columns of answers in tables that other programs read, too: how one is added, and kept fresh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa

Compute: TypeAlias = Callable[["pa.RecordBatch | pa.Table"], pa.Array]
"""The values of a column for the rows of a batch, in order."""


class AnsweredTable(Protocol):
    """A table that may hold columns of answers. Readers see each change whole or not at all."""

    place: str
    """Where it lies, the same in every session."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def version(self) -> int:
        """The number of its newest version; 0 without versions."""
        ...

    def add(self, field: pa.Field, read: Sequence[str], compute: Compute) -> int:
        """Add a column whose values depend on the columns ``read``: the number of rows."""
        ...

    def refresh(self, field: pa.Field, read: Sequence[str], compute: Compute) -> int:
        """Write the values that are others by now: the number of their rows."""
        ...

    def show(self) -> None:
        """Make the newest version the session's table."""
        ...


def are_others(before: pa.Array | pa.ChunkedArray, now: pa.Array) -> list[bool]:
    """Whether each value is another one now."""
    return [a != b for a, b in zip(before.to_pylist(), now.to_pylist(), strict=True)]
