"""Values of tables as JSON that a page shows without loss."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow as pa

from blendfusion.files.python_values import python_values
from blendfusion.files.row_writers import text_of

_EXACT = 2**53
"""The whole numbers that JavaScript holds exactly."""
_CHARACTERS = 100_000


def rows_of(table: pa.Table, first: int, count: int) -> list[list[Any]]:
    """Rows of ``table`` from ``first`` on, each a list of cells."""
    part = table.slice(first, count)
    columns = [column_cells(part.column(i)) for i in range(part.num_columns)]
    return [list(row) for row in zip(*columns, strict=True)]


def column_cells(values: pa.ChunkedArray) -> list[Any]:
    """The values of a column as JSON."""
    return [cell(value) for value in python_values(values, " ")]


def cell(value: object) -> Any:
    """``value`` as JSON: numbers that JavaScript would round, bytes and dates as text.

    >>> cell({"a": 2**60, "b": [1.5, None, b"\\x01"]})
    {'a': '1152921504606846976', 'b': [1.5, None, '0x01']}
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, datetime.timedelta | pa.MonthDayNano):
        return text_of(value)
    if isinstance(value, str):
        return value if len(value) <= _CHARACTERS else f"{value[:_CHARACTERS]}…"
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return f"0x{value[: _CHARACTERS // 2].hex()}"
    if isinstance(value, dict):
        return {str(name): cell(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [cell(held) for held in value]
    return str(value)
