"""``open_during``: whether opening hours include some time of the week, without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import Expr, ScalarUDF, col, udf

if TYPE_CHECKING:
    from blendfusion.udfs.register.expr import ColumnLike

NAME = "open_during"


def _column(hours: pa.Array, times: pa.Array) -> pa.Array:
    from blendfusion.services.dialects.suql.hours_text import during

    rows = list(zip(hours.to_pylist(), times.to_pylist(), strict=True))
    known = {row: None if None in row else during(*row) for row in dict.fromkeys(rows)}
    return pa.array([known[row] for row in rows], pa.bool_())


def open_during_function() -> ScalarUDF:
    return udf(_column, [pa.string(), pa.string()], pa.bool_(), "immutable", NAME)


def open_during(hours: ColumnLike, times: ColumnLike) -> Expr:
    """Whether opening hours hold at some of the ``times``: BOOLEAN, NULL where either is NULL or
    cannot be read.

    Both are texts such as ``'Mon-Fri 9:00-17:00, Sat 10am-2pm'`` or Yelp's JSON; a span that ends
    no later than it begins ends on the next day. No model is asked. To ask one what a phrase means,
    see docs/dialects.md."""
    given = (col(x) if isinstance(x, str) else x for x in (hours, times))
    return open_during_function()(*given)
