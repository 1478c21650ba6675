"""Which values a column takes, and how they become those of its type.

Nothing changes on the way: a number that the type does not have, a text for a number and a moment
without a zone for one with a zone are errors."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from blendfusion.errors import ExecutionError, QueryError


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without the layouts of Arrow: one for all texts, one for all bytes."""
    if pt.is_dictionary(kind):
        return plain_type(kind.value_type)
    if (
        pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_string_view(kind)
        or pt.is_null(kind)
    ):
        return pa.string()
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_fixed_size_binary(kind):
        return pa.binary()
    if is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return pa.date32() if pt.is_date64(kind) else kind


def is_list(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pt.is_list, pt.is_large_list, pt.is_fixed_size_list))


def is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def is_fit(values: pa.DataType, column: pa.DataType) -> bool:
    """Whether values of a plain type may stand in a column of another."""
    if values == column:
        return True
    if is_list(values) and is_list(column):
        return is_fit(plain_type(values.value_type), plain_type(column.value_type))
    if pt.is_timestamp(column):
        naive = column.tz is None
        same_zone = pt.is_timestamp(values) and (values.tz is None) == naive
        return same_zone or (naive and pt.is_date(values))
    pairs = ((is_number, is_number), (pt.is_time, pt.is_time))
    return any(one(values) and other(column) for one, other in pairs)


def fit(values: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """The values in a type that they fit. Raises QueryError, which names the column, for a value
    that the type does not have."""
    try:
        if pt.is_null(values.type):
            return pa.chunked_array([pa.nulls(len(values), kind)])
        _check_intervals(values)
        return values.cast(plain_type(values.type)).cast(kind)
    except pa.ArrowException as problem:
        raise QueryError(
            f"column '{name}' holds a value that {kind} does not have: {problem}; nothing was written",
            hint=f"Round or cast it in the query: CAST({name} AS …).",
        ) from problem


def _check_intervals(values: pa.ChunkedArray) -> None:
    """Raises ArrowInvalid for an interval with nanoseconds: databases keep microseconds."""
    kept = values.to_pylist() if pt.is_interval(values.type) else []
    if any(value is not None and value.nanoseconds % 1000 for value in kept):
        raise pa.ArrowInvalid("an interval has nanoseconds, and would lose them")


def check_numbers(values: pa.ChunkedArray, name: str, *, infinite: bool) -> None:
    """Raises ExecutionError for NaN, and for infinite numbers unless a database has them."""
    if not pt.is_floating(values.type):
        return
    wrong = pc.is_nan(values) if infinite else pc.invert(pc.is_finite(values))
    if pc.any(wrong).as_py():
        word = "NaN" if infinite else "NaN or infinite"
        raise ExecutionError(
            f"column '{name}' holds a number that is {word}, which the database does not have; "
            "nothing was written",
            hint=f"Write NULL instead: CASE WHEN isnan({name}) THEN NULL ELSE {name} END.",
        )


def check_key(rows: pa.Table, key: tuple[str, ...]) -> None:
    """Raises QueryError unless the columns of the key tell all rows apart."""
    for name in key:
        if rows.column(name).null_count:
            raise QueryError(
                f"the key '{name}' is NULL in {rows.column(name).null_count} of the rows; nothing was "
                "written",
                hint=f"Leave them out: WHERE {name} IS NOT NULL.",
            )
    groups = rows.select(list(key)).group_by(list(key)).aggregate([([], "count_all")])
    twice = groups.filter(pc.greater(groups.column("count_all"), 1))
    if len(twice):
        shown = ", ".join(f"{name} = {twice.column(name)[0].as_py()!r}" for name in key)
        raise QueryError(
            f"two rows have the same key, for example {shown}; nothing was written",
            hint="Choose one of them: SELECT DISTINCT ON (…), or GROUP BY the key.",
        )
