"""XLSX files by openpyxl (extra ``xlsx``): a sheet as a table, and a table as a sheet."""

from __future__ import annotations

import datetime
import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from datafusion import SessionContext

from blendfusion.datafusion.substrait_io import batches_of
from blendfusion.errors import QueryError, close_matches
from blendfusion.files.csv_head import check_names
from blendfusion.files.python_values import python_rows
from blendfusion.files.united_types import column_keys
from blendfusion.places.folders import Listing
from blendfusion.places.notes import note, note_columns, quote_first

_TITLE_ROWS = 20
"""The rows of a sheet in which its header is looked for."""
_ROWS = 1_048_575
"""The rows of a sheet below its header."""
_CHARACTERS = 32_767
"""The characters of a cell."""
_VALUELESS = re.compile(
    rb'<c\b(?![^>]*\bt="str")[^>]*>\s*<f\b[^>]*(?:/>|>[^<]*</f>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>'
)
"""A cell with a formula and no value. Text may be empty."""
_ERROR = "e"
"""The type of a cell that shows an error, such as #N/A: what it would be is not known."""
_BLOCK = 1 << 20
_LONGEST = 1 << 14
"""About the most bytes of a cell with a formula."""
_FIRST_YEAR = 1900
"""The first year of spreadsheets, which show earlier days as text only."""
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


class Sheet(NamedTuple):
    """The rows of a sheet below its header."""

    file: Path
    columns: Mapping[str, Sequence[Any]]


def register(catalog: SessionContext, name: str, listing: Listing, sheet: str | None) -> None:
    """Register the sheets of workbooks as one table: see ``read_sheet``. Columns of one name are
    one column, whatever their letter case; one of several types is text."""
    sheets = [read_sheet(file.path, sheet) for file in listing.files]
    key_of = column_keys([*one.columns] for one in sheets)
    note_columns(listing.place, [(str(one.file), [*one.columns]) for one in sheets], key_of)
    names: dict[str, str] = {}
    for title in (title for one in sheets for title in one.columns):
        names.setdefault(key_of(title), title)
    cells: dict[str, list[Any]] = {key: [] for key in names}
    for one in sheets:
        own = {key_of(title): values for title, values in one.columns.items()}
        rows = len(next(iter(own.values())))
        for key, values in cells.items():
            values += own.get(key, [None] * rows)
    arrays = [_array(values) for values in cells.values()]
    catalog.register_record_batches(name, [batches_of(pa.table(arrays, names=[*names.values()]))])


def read_sheet(file: Path, sheet: str | None = None) -> Sheet:
    """The sheet of that name (None: the first one that holds something); its first row that names
    columns is the header. Warns of what was left out: other sheets, a title above the header,
    errors, values that formulas lack. Raises QueryError for a file that is no spreadsheet, an
    unknown sheet, and one without a header."""
    try:
        book = _openpyxl().load_workbook(file, read_only=True, data_only=True)
    except QueryError:
        raise
    except Exception as problem:  # zip, XML and openpyxl each have their own
        raise QueryError(
            f"'{file}' is no XLSX file: {problem}", hint="Save it again as .xlsx, or as .csv."
        ) from problem
    try:
        for one in book.worksheets:
            one.reset_dimensions()  # what a file says of its size may be less than it holds
        chosen = _named_sheet(book, file, sheet) if sheet is not None else _first_sheet(book, file)
        place = f"{file}#{chosen.title}"
        values, errors = _values_of(chosen)
        before, header, rows = _table_in(values)
        width = max(map(len, [header, *rows]))
        padded = ([*row, *[None] * (width - len(row))] for row in rows)
        columns = list(zip(*padded, strict=True)) or [()] * len(header)
        bare = _count_valueless(file, chosen)
    finally:
        book.close()
    if before:
        note(f"'{place}': the rows above the header are left out: {before[0]!r}")
    if errors:
        note(f"'{place}': {errors:,} cell{'s' * (errors > 1)} with an error, read as NULL")
    if bare:
        note(
            f"'{place}': {bare:,} formula{'s' * (bare > 1)} without a value, read as NULL: the program that "
            "wrote the file does not compute; save it in a spreadsheet program"
        )
    names = [*header, *[None] * (len(columns) - len(header))]
    named = {at: str(name) for at, name in enumerate(names) if name is not None}
    unnamed = [
        at for at, column in enumerate(columns) if at not in named and any(map(_is_filled, column))
    ]
    if unnamed or not named:
        where = (
            f"column {unnamed[0] + 1} of the sheet has values and no name"
            if named
            else "no row names columns"
        )
        raise QueryError(
            f"'{place}': {where}", hint="Begin the table with a row of one name a column."
        )
    check_names(list(named.values()), place)
    return Sheet(file, {name: columns[at] for at, name in named.items()})


def _values_of(sheet: Any) -> tuple[list[list[Any]], int]:
    """The rows of a sheet, with NULL for its errors, and the number of these."""
    rows = [[*row] for row in sheet.iter_rows()]
    errors = [cell for row in rows for cell in row if cell.data_type == _ERROR]
    return [[None if c.data_type == _ERROR else c.value for c in row] for row in rows], len(errors)


def _is_filled(cell: object) -> bool:
    return cell is not None


def _named_sheet(book: Any, file: Path, name: str) -> Any:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    near = [title for title in sheets if title.strip().lower() == name.strip().lower()]
    found = sheets.get(name) or (sheets[near[0]] if len(near) == 1 else None)
    if found is None:
        hint = close_matches(name, sheets) or f"Its sheets are {', '.join(map(repr, sheets))}."
        raise QueryError(f"'{file}' has no sheet '{name}'", hint=hint)
    return found


def _first_sheet(book: Any, file: Path) -> Any:
    """The first sheet with rows below a header, else the first that holds something. Warns of
    others."""
    filled = [sheet for sheet in book.worksheets if _count_rows(sheet)] or book.worksheets
    first = next((sheet for sheet in filled if _count_rows(sheet) > 1), filled[0])
    others = [sheet for sheet in filled if sheet is not first]
    if others:
        titles = [sheet.title for sheet in others]
        note(
            f"'{file}': the sheet '{first.title}' of {len(filled)} was read; others: {quote_first(titles)}. "
            f"Name one: register_file(path, sheet={titles[0]!r}), or '{file.name}#{titles[0]}'"
        )
    return first


def _count_valueless(file: Path, sheet: Any) -> int:
    """The formulas of a sheet whose values the file does not hold."""
    found, rest = 0, b""
    with zipfile.ZipFile(file) as archive, archive.open(sheet._worksheet_path) as part:
        while block := part.read(_BLOCK):
            text = rest + block
            ends = [match.end() for match in _VALUELESS.finditer(text)]
            found += len(ends)
            rest = text[max([len(text) - _LONGEST, *ends[-1:]]) :]
    return found


def _count_rows(sheet: Any) -> int:
    """The rows with a filled cell: two stand for all that are more."""
    rows = sheet.iter_rows(values_only=True)
    return len([*islice((row for row in rows if any(map(_is_filled, row))), 2)])


def _table_in(
    sheet: Iterable[Sequence[Any]],
) -> tuple[list[str], Sequence[Any], Sequence[Sequence[Any]]]:
    """(what stands above the header, the header, the rows below) of the rows of a sheet. Rows of
    one cell above a row of several texts are a title."""
    rows = list(sheet)
    filled = [[cell for cell in row if cell is not None] for row in rows[:_TITLE_ROWS]]
    start = next((at for at, cells in enumerate(filled) if cells), None)
    if start is None:
        return [], (), ()
    at = next((at for at in range(start, len(filled)) if len(filled[at]) > 1), start)
    if not all(isinstance(cell, str) for cell in filled[at]) or any(
        len(cells) == 1 for cells in filled[at + 1 : at + 2]
    ):
        at = start
    above = [str(cell) for cells in filled[:at] for cell in cells]
    return above, rows[at], rows[at + 1 :]


def _array(values: list[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and any(value and abs(value) >= 1 << 63 for value in values):
        kinds.add(float)
    if kinds == {int, float}:
        values = [None if value is None else float(value) for value in values]
    elif len(kinds) > 1:
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
            raise _sheet_error(column, f"has a text of {len(value):,} characters")
        try:
            made = openpyxl.cell.WriteOnlyCell(sheet, value)
        except openpyxl.utils.exceptions.IllegalCharacterError as problem:
            raise _sheet_error(column, "has a text with control characters") from problem
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
        yield from (tuple(map(_plain, row)) for row in python_rows(batch))


def _plain(value: object) -> object:
    """A value that a sheet can hold; the text of any other value."""
    if isinstance(value, datetime.datetime | datetime.time) and (
        value.tzinfo is not None or value.microsecond % 1000
    ):
        return value.isoformat()
    if isinstance(value, datetime.date) and value.year < _FIRST_YEAR:
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


def _sheet_error(column: str, what: str) -> QueryError:
    return QueryError(
        f"column '{column}' {what}, which no sheet holds", hint="Write it as .parquet or .csv."
    )
