"""Parquet files with dictionaries of other values than texts, as pandas writes categories.

DataFusion 55 joins no dictionaries of numbers, and panics on those of truth values: a table reads
the numbers themselves, and what no schema mends is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from blendfusion.datafusion.arrow_layouts import plain_type
from blendfusion.datafusion.arrow_types import is_bytes, is_text
from blendfusion.errors import QueryError

_UNREADABLE = (pa.types.is_boolean, pa.types.is_decimal, pa.types.is_fixed_size_binary)


_SCHEMA_PLACE = 4
"""The place of ``schema`` behind the path among the arguments of ``register_parquet``."""


def decoding_schema(
    schema: pa.Schema, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> pa.Schema | None:
    """The schema with which DataFusion reads files of ``schema`` without such dictionaries; None if
    there are none. ``args`` and ``kwargs`` are those of ``register_parquet`` behind the path: a
    schema among them stays. Raises QueryError for what DataFusion cannot read from Parquet."""
    if len(args) > _SCHEMA_PLACE or kwargs.get("schema") is not None:
        return None
    held = {field.name for field in schema if _is_odd(field.type)}
    if not held:
        return None
    for field in schema:
        if field.name in held and any(test(field.type.value_type) for test in _UNREADABLE):
            raise QueryError(
                f"'{field.name}' is a dictionary of {field.type.value_type}, which DataFusion cannot "
                "read from Parquet",
                hint="Read the file with pyarrow.parquet.read_table, and register that table with "
                "from_arrow; or write the file again without the dictionary.",
            )
    listed = args[0] if args else kwargs.get("table_partition_cols")
    partitions = {name for name, _ in listed or ()}
    kept = [field for field in schema if field.name not in partitions]
    return pa.schema([f.with_type(plain_type(f.type)) if f.name in held else f for f in kept])


def _is_odd(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind)) and not (
        is_text(kind.value_type) or is_bytes(kind.value_type)
    )
