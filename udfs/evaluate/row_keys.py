"""Keys of rows, which are equal in Python where SQL groups their values as equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.udfs.evaluate.distinct import Column

Key: TypeAlias = tuple[object, ...]

_types = pa.types


def row_keys(columns: Sequence[Column], n: int) -> list[Key]:
    """The keys of ``n`` rows of these columns, in their order."""
    return [*zip(*map(key_values, columns), strict=True)] if columns else [()] * n


def key_values(column: Column) -> list[object]:
    """The values of a column as parts of keys; None for NULL. Times are numbers: two of one zone
    are equal in Python if clocks show the same, before and after they are put back. Floating-point
    numbers are texts: NaN equals itself, and -0.0 is 0.0. So are lists and structs, which have no
    hash."""
    is_encoded = _types.is_dictionary(column.type)
    kind = column.type.value_type if is_encoded else column.type
    if _types.is_temporal(kind) and not _types.is_interval(kind):
        column = pc.cast(column, kind) if is_encoded else column
        column = pc.cast(column, f"int{kind.bit_width}")
    values: list[Any] = column.to_pylist()
    if _types.is_floating(kind):
        return [None if value is None else repr(value + 0.0) for value in values]
    if _types.is_nested(kind):
        return [None if value is None else repr(value) for value in values]
    return values
