"""Verbs of DataFusion that go wrong over names in capitals, in ways that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from datafusion import DataFrame, col
from datafusion import functions as f

from blendfusion.datafusion.columns import Column, column_of, columns_of


def join(
    left: DataFrame,
    right: DataFrame,
    how: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner",
    *,
    left_on: Sequence[str],
    right_on: Sequence[str],
    coalesce_duplicate_keys: bool = True,
) -> DataFrame:
    """``DataFrame.join``, which leaves two columns of a key in double quotes."""
    keys: dict[str, Any] = {"left_on": [*left_on], "right_on": [*right_on]}
    joined = DataFrame.join(left, right, how=how, **keys, coalesce_duplicate_keys=False)
    shared = {column_of(a) for a, b in zip(left_on, right_on, strict=True) if a == b}
    if not coalesce_duplicate_keys or how in ("semi", "anti") or not shared:
        return joined
    names = {column.name for column in shared if column is not None}
    columns: dict[Column | str, list[Column]] = {}
    for column in columns_of(joined):
        columns.setdefault(column.name if column.name in names else column, []).append(column)
    return DataFrame.select(
        joined,
        *(
            one.expr
            if not others
            else f.coalesce(one.expr, *(o.expr for o in others)).alias(one.name)
            for one, *others in columns.values()
        ),
    )


def fill_null(frame: DataFrame, value: Any, subset: Sequence[str] | None = None) -> DataFrame:
    """``DataFrame.fill_null``, which fails for a frame with names in capitals."""
    return _by_numbers(DataFrame.fill_null, frame, value, subset)


def fill_nan(frame: DataFrame, value: Any, subset: Sequence[str] | None = None) -> DataFrame:
    """``DataFrame.fill_nan``, which fails for a frame with names in capitals."""
    return _by_numbers(DataFrame.fill_nan, frame, value, subset)


def _by_numbers(
    method: Callable[..., DataFrame], frame: DataFrame, value: Any, subset: Sequence[str] | None
) -> DataFrame:
    """The frame that ``method`` makes of ``frame``, over columns with numbers for names.

    Raises DataFusion's error for a name in ``subset`` that is no column.
    """
    numbered = {f"c{at}": column for at, column in enumerate(columns_of(frame))}
    known = {column.name for column in numbered.values()}
    for name in {*(subset or ())} - known:
        DataFrame.select(frame, Column(name).expr)
    chosen = [n for n, column in numbered.items() if subset is None or column.name in subset]
    below = DataFrame.select(frame, *(column.expr.alias(n) for n, column in numbered.items()))
    filled = method(below, value, chosen)
    return DataFrame.select(filled, *(col(n).alias(c.name) for n, c in numbered.items()))
