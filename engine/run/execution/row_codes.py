"""Numbers rows by their values, and finds those on which expressions have some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.planner.ir.nodes import Expr, fields
from blendfusion.run.execution.scratch_context import Workbench

Column: TypeAlias = "pa.Array | pa.ChunkedArray"

_MOST_CODES = 2**62


def codes_of(columns: Sequence[Column], n: int) -> np.ndarray | None:
    """A number for each row, equal for equal values of all columns; None for columns of a type that
    has no hash."""
    codes, most = np.zeros(n, dtype=np.int64), 1
    for column in columns:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(whole, pa.ChunkedArray):
            return None
        try:
            encoded = pc.dictionary_encode(whole, null_encoding="encode")
        except pa.ArrowNotImplementedError:
            return None
        values = max(len(encoded.dictionary), 1)
        if most * values > _MOST_CODES:
            codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
            most = n
        codes = codes * values + encoded.indices.to_numpy(zero_copy_only=False)
        most *= values
    return codes


def computes(exprs: Sequence[Expr], table: pa.Table, workbench: Workbench) -> np.ndarray:
    """Where all of these expressions have a value, and none fails."""
    columns = [table.column(i) for i in sorted(set().union(*map(fields, exprs)))]
    codes = codes_of(columns, len(table))
    if codes is None:
        codes = np.arange(len(table))
    first, places = np.unique(codes, return_index=True, return_inverse=True)[1:]
    found = np.full(len(first), True)
    left = [np.arange(len(first))]
    while left:
        some = left.pop()
        try:
            workbench.columns(exprs, table.take(first[some]))
        except Exception:  # DataFusion does not say on which row it failed
            found[some] = len(some) > 1
            left += np.array_split(some, 2) if len(some) > 1 else []
    return np.asarray(found[places.reshape(-1)])
