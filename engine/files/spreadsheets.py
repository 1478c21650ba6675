"""XLSX files by openpyxl (extra ``xlsx``): the first sheet as a table, and a table as a sheet."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from blendfusion.errors import QueryError

_ROWS = 1_048_575
"""The rows of a sheet below its header."""
_CHARACTERS = 32_767
"""The characters of a cell."""
_DIGITS = 15
"""The digits of a number in a cell: spreadsheets round longer ones, such as the numbers of orders,
which are text therefore."""


def _openpyxl() -> Any:
    try:
        import openpyxl
        import openpyxl.cell
    except ImportError as problem:
        raise QueryError(
            "XLSX files need the package openpyxl", hint="pip install 'blendfusion[xlsx]'"
        ) from problem
    return openpyxl


def read_sheet(file: Path) -> pa.Table:
    """The first sheet; its first row names the columns. A column of several types is text. Raises
    QueryError for a file that is no spreadsheet, or a sheet without a header."""
    try:
        book = _openpyxl().load_workbook(file, read_only=True, data_only=True)
    except QueryError:
        raise
    except Exception as problem:  # zip, XML and openpyxl each have their own
        raise QueryError(
            f"'{file}' is no XLSX file: {problem}", hint="Save it again as .xlsx, or as .csv."
        ) from problem
    try:
        rows = iter(book.worksheets[0].iter_rows(values_only=True))
        head = next(rows, None)
        if head is None or any(name is None for name in head):
            raise QueryError(
                f"'{file}': the first row of the first sheet names no columns",
                hint="Begin the sheet with one name a column.",
            )
        # A row ends with its last cell that is filled.
        padded = ([*row, *[None] * (len(head) - len(row))][: len(head)] for row in rows)
        values = list(zip(*padded, strict=True)) or [()] * len(head)
    finally:
        book.close()
    arrays = [_array(list(column)) for column in values]
    return pa.table(arrays, names=[str(name) for name in head])


def _array(values: list[Any]) -> pa.Array:
    if any(isinstance(value, float) for value in values):
        values = [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values]
    if len({type(value) for value in values if value is not None}) > 1:
        values = [None if value is None else str(value) for value in values]
    return pa.array(values)


def write_sheet(table: pa.Table, file: Path) -> None:
    """Write ``table``, of columns that a sheet can hold, as the first sheet of ``file``. Text that
    looks like a formula stays text. Raises QueryError for what a sheet cannot hold."""
    openpyxl = _openpyxl()
    if len(table) > _ROWS:
        raise QueryError(
            f"a sheet holds {_ROWS:,} rows, and the result has {len(table):,}",
            hint="Write it as .parquet or .csv.",
        )
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("result")

    def cell(column: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        if len(value) > _CHARACTERS:
            raise _refused(column, f"has a text of {len(value):,} characters")
        try:
            made = openpyxl.cell.WriteOnlyCell(sheet, value)
        except openpyxl.utils.exceptions.IllegalCharacterError as problem:
            raise _refused(column, "has a text with control characters") from problem
        made.data_type = "s"
        return made

    names = table.column_names
    try:
        sheet.append([cell(name, name) for name in names])
        for row in _rows(table):
            sheet.append([cell(name, value) for name, value in zip(names, row, strict=True)])
        book.save(file)
    finally:
        if not sheet.closed:  # a value was refused; the sheet's temporary file is still open
            sheet.close()
        book.close()


def _rows(table: pa.Table) -> Iterator[tuple[object, ...]]:
    for batch in table.to_batches(max_chunksize=4096):
        columns = [[_plain(value) for value in column.to_pylist()] for column in batch.columns]
        yield from zip(*columns, strict=True)


def _plain(value: object) -> object:
    """A value that a sheet can hold; the text of any other value."""
    if isinstance(value, datetime.datetime | datetime.time) and value.tzinfo is not None:
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if (
        isinstance(value, int | Decimal)
        and len(Decimal(value).normalize().as_tuple().digits) > _DIGITS
    ):
        return str(value)
    known = bool | int | float | Decimal | str | datetime.date | datetime.time | None
    return value if isinstance(value, known) else str(value)


def _refused(column: str, what: str) -> QueryError:
    return QueryError(
        f"column '{column}' {what}, which no sheet holds", hint="Write it as .parquet or .csv."
    )
