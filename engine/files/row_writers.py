"""Writes rows as CSV, TSV, lines of JSON, Arrow and Parquet, as they come.

Memory holds a chunk of rows, and a row group of Parquet.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from typing import IO

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from blendfusion.files.python_values import python_rows, python_values

_GROUP_ROWS, _GROUP_BYTES = 1 << 20, 1 << 26
"""The most rows and bytes (uncompressed) of a row group of Parquet."""
_NUMERAL = f"<{uuid.uuid4().hex}>"
"""Stands around the digits of a decimal number until they are JSON: no text holds it."""
_CHUNK_ROWS = 1 << 14
"""Rows that become text at a time."""


def write_csv(tables: Iterable[pa.Table], file: IO[bytes]) -> None:
    """Write ``tables`` of one schema, at least one, under one header."""
    header = True
    for table in tables:
        for part in _parts(table):
            text = io.BytesIO()
            options = pyarrow.csv.WriteOptions(include_header=header)
            pyarrow.csv.write_csv(flat(part), text, options)
            file.write(text.getbuffer())
            header = False


def write_tsv(tables: Iterable[pa.Table], file: IO[bytes]) -> None:
    """Write ``tables`` as ``write_csv`` does, with tabs, for ``cut`` and ``awk``: in quotes are
    only cells with a tab, a line break or a quote, and empty texts, as nothing is NULL."""
    first, rest = _split_first(tables)
    names = _quote(pa.array(first.column_names, pa.large_string()))
    file.write(("\t".join(names.to_pylist()) + "\n").encode())
    for table in chain((first,), rest):
        for part in _parts(table):
            columns = [_quote(values.cast(pa.large_string())) for values in flat(part).columns]
            lines = _join(*columns, "\t")
            file.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def _quote(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """``texts`` of cells as TSV has them."""
    compute = pyarrow.compute
    quoted = _join('"', compute.replace_substring(texts, '"', '""'), '"', "")
    return compute.if_else(compute.match_substring_regex(texts, '^$|[\t\r\n"]'), quoted, texts)


def _join(*parts: pa.Array | pa.ChunkedArray | str) -> pa.Array | pa.ChunkedArray:
    """The texts of each row, with the last part between them; "" for null."""
    texts = (pa.scalar(p, pa.large_string()) if isinstance(p, str) else p for p in parts)
    return pyarrow.compute.binary_join_element_wise(*texts, null_handling="replace")


def write_json_lines(tables: Iterable[pa.Table], file: IO[bytes]) -> None:
    """Write one object a row and line."""
    for table in tables:
        for part in _parts(table):
            rows = (dict(zip(part.column_names, r, strict=True)) for r in python_rows(part))
            lines = (json_text(row) + "\n" for row in rows)
            file.write("".join(lines).encode())


def write_arrow(tables: Iterable[pa.Table], file: IO[bytes]) -> None:
    """Write an Arrow file. It holds one dictionary a column, so all rows are read first where a
    column has one."""
    first, rest = _split_first(tables)
    if any(pa.types.is_dictionary(kind) for kind in first.schema.types):
        first, rest = pa.concat_tables([first, *rest]).unify_dictionaries(), iter(())
    with pa.ipc.new_file(file, first.schema) as writer:
        for table in chain((first,), rest):
            writer.write_table(table)


def write_parquet(tables: Iterable[pa.Table], file: IO[bytes]) -> None:
    """Write a Parquet file, with a row group for a million rows or 64 MiB. Intervals, which it
    does not hold, become text."""
    first, rest = _split_first(as_text(_decode(table), is_in_parquet) for table in tables)
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(file, first.schema) as writer:
        for group in _groups(first, rest):
            writer.write_table(group, row_group_size=_GROUP_ROWS)


ROW_WRITERS: dict[str, Callable[[Iterable[pa.Table], IO[bytes]], None]] = {
    "csv": write_csv,
    "tsv": write_tsv,
    "json": write_json_lines,
    "arrow": write_arrow,
    "parquet": write_parquet,
}
"""By the format. Each takes tables of one schema, at least one, and does not close its file."""


def _split_first(tables: Iterable[pa.Table]) -> tuple[pa.Table, Iterator[pa.Table]]:
    """The first table, and the others."""
    rest = iter(tables)
    return next(rest), rest


def _groups(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The rows of all tables in order, in tables of about one row group."""
    parts, rows, size = [first], len(first), first.nbytes
    for table in rest:
        if rows + len(table) > _GROUP_ROWS or size + table.nbytes > _GROUP_BYTES:
            yield pa.concat_tables(parts)
            parts, rows, size = [], 0, 0
        parts, rows, size = [*parts, table], rows + len(table), size + table.nbytes
    yield pa.concat_tables(parts)


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    """Slices of few rows; the table itself if it has none, for its header."""
    return (table.slice(at, _CHUNK_ROWS) for at in range(0, max(1, len(table)), _CHUNK_ROWS))


def _decode(table: pa.Table) -> pa.Table:
    """Run-end-encoded columns as plain ones: neither Parquet nor CSV has them."""
    for place, column in enumerate(table.schema):
        if pa.types.is_run_end_encoded(column.type):
            plain = pyarrow.compute.run_end_decode(table.column(place))
            table = table.set_column(place, column.name, plain)
    return table


def flat(table: pa.Table) -> pa.Table:
    """Columns that CSV can hold: lists, structs and maps as JSON text, bytes as base64."""
    table = _decode(table)
    for place, column in enumerate(table.schema):
        kind, values = column.type, table.column(place)
        if pa.types.is_dictionary(kind):
            values, kind = values.cast(kind.value_type), kind.value_type
        if pa.types.is_string_view(kind):
            values = values.cast(pa.string())
        if values is not table.column(place):
            table = table.set_column(place, column.name, values)
    return as_text(table, _is_csv)


def as_text(table: pa.Table, is_held: Callable[[pa.DataType], bool]) -> pa.Table:
    """``table`` with the columns of types that ``is_held`` refuses as text."""
    for place, column in enumerate(table.schema):
        if not is_held(column.type):
            values = python_values(table.column(place))
            texts = pa.array([None if v is None else text_of(v) for v in values], pa.string())
            table = table.set_column(place, column.name, texts)
    return table


def _is_csv(kind: pa.DataType) -> bool:
    """Whether pyarrow writes values of this type as text that reads back."""
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_date(kind)
        or types.is_time(kind)
        or types.is_timestamp(kind)
    )


def is_flat(kind: pa.DataType) -> bool:
    """Whether DataFusion writes values of this type as CSV."""
    return not pa.types.is_nested(kind)


@cache
def is_in_parquet(kind: pa.DataType) -> bool:
    """Whether Parquet holds values of this type."""
    from pyarrow.parquet import ParquetWriter

    try:
        ParquetWriter(io.BytesIO(), pa.schema([("x", kind)])).close()
    except pa.ArrowNotImplementedError:
        return False
    return True


def text_of(value: object) -> str:
    """The text of a value where a column is text: JSON of a nested one, base64 of bytes."""
    plain = value if isinstance(value, float) else _plain(value)
    if isinstance(plain, dict | list):
        return json_text(plain)
    return _base64(plain) if isinstance(plain, bytes) else str(plain)


def json_text(value: object) -> str:
    """JSON of a value of any Arrow type, in one line. Decimal numbers keep their digits;
    not-a-number and infinities, which JSON does not know, are null."""
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, default=_jsonable)
    return text.replace(f'"{_NUMERAL}', "").replace(f'{_NUMERAL}"', "")


def _plain(value: object) -> object:
    """``value`` without what JSON would write as something else."""
    if isinstance(value, dict):
        return {k if isinstance(k, str) else text_of(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, pa.MonthDayNano):
        return _interval(*value)
    if isinstance(value, datetime.timedelta):
        nanoseconds = getattr(value, "nanoseconds", 0)  # of pandas
        return _interval(
            0, value.days, (value.seconds * 10**6 + value.microseconds) * 1000 + nanoseconds
        )
    return value


def _interval(months: int, days: int, nanoseconds: int) -> str:
    """An interval as DataFusion and PostgreSQL write and read it: ``1 mons 2 days 0.5 secs``."""
    seconds = decimal.Decimal(abs(nanoseconds)) / 10**9
    sign = -1 if nanoseconds < 0 else 1
    parts = {
        "mons": months,
        "days": days,
        "hours": sign * int(seconds // 3600),
        "mins": sign * int(seconds // 60 % 60),
        "secs": sign * (seconds % 60).normalize(),
    }
    return (
        " ".join(
            f"{count:f} {unit}" if unit == "secs" else f"{count} {unit}"
            for unit, count in parts.items()
            if count
        )
        or "0 secs"
    )


def _jsonable(value: object) -> str:
    if isinstance(value, decimal.Decimal):
        return f"{_NUMERAL}{value:f}{_NUMERAL}"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return _base64(value)
    return str(value)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
