"""Results to files and screens, for the command."""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import json
import shutil
import sys
from pathlib import Path
from typing import IO, Literal, get_args

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from blendfusion.errors import QueryError
from blendfusion.files.spreadsheets import write_sheet
from blendfusion.files.whole_file import replacing
from blendfusion.redaction import printable

Format = Literal["table", "csv", "tsv", "json", "arrow", "parquet", "xlsx"]
FORMATS: tuple[Format, ...] = get_args(Format)

_CELL_CHARACTERS = 60
_PIPE_WIDTH = 160
"""Characters a line where there is no terminal to ask."""


_FORMAT_OF: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".ndjson": "json",
    ".jsonl": "json",
    ".arrow": "arrow",
    ".parquet": "parquet",
    ".xlsx": "xlsx",
    ".txt": "table",
}
_NEEDS_FILE: frozenset[Format] = frozenset({"arrow", "parquet", "xlsx"})


def format_for(output: Path | None) -> Format:
    """The format that the name of the output file asks for; a table for screens.

    Raises QueryError for an extension that no format has.
    """
    if output is None:
        return "table"
    style = _FORMAT_OF.get(output.suffix.lower())
    if style is None:
        raise QueryError(
            f"--output {output}: how to write '{output.suffix or output.name}'?",
            hint=f"The extensions known are {', '.join(_FORMAT_OF)}; --format says it, too.",
        )
    return style


def check_output(style: Format, output: Path | None) -> None:
    """Raise QueryError if nothing in this format can be written there, before anything is asked."""
    if output is None:
        if style in _NEEDS_FILE:
            raise QueryError(f"{style} needs a file", hint="Name one with --output FILE.")
    elif output.is_dir() or not output.parent.is_dir():
        raise QueryError(f"cannot write '{output}': no file can be there", hint="Name a file.")


def write(table: pa.Table, style: Format, output: Path | None, *, full_cells: bool = False) -> None:
    """Write ``table`` to the file ``output``, or to standard output if it is None.

    A file is written whole or not at all. ``full_cells`` shows the whole text of each cell of a
    table that is drawn; files have it anyway. Raises QueryError if the file cannot be written."""
    check_output(style, output)
    if output is None:
        _write_text(table, style, sys.stdout, full_cells)
        return
    try:
        # A pipe or a device has no place beside it, and nothing to keep.
        if output.exists() and not output.is_file():
            _write_file(table, style, output)
            return
        with replacing(output) as part:
            _write_file(table, style, part)
    except OSError as error:
        raise QueryError(f"cannot write '{output}': {error.strerror or error}") from error


def page_of(table: pa.Table, *, full_cells: bool = False) -> str:
    """``table`` as it is drawn on the terminal, as text."""
    text = io.StringIO()
    width = shutil.get_terminal_size((_PIPE_WIDTH, 0)).columns
    if table.column_names in (["plan"], ["plan_type", "plan"]):
        _write_plan(table, text)
    else:
        _write_table(table, text, full_cells, width)
    return text.getvalue()


def _write_file(table: pa.Table, style: Format, file: Path) -> None:
    if style == "parquet":
        pyarrow.parquet.write_table(_decoded(table), file)
    elif style == "xlsx":
        write_sheet(_flat(table), file)
    elif style == "arrow":
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        with file.open("w", encoding="utf-8", newline="") as text:
            _write_text(table, style, text, full_cells=True)


def _write_text(table: pa.Table, style: Format, file: IO[str], full_cells: bool) -> None:
    if style == "csv":
        _write_csv(table, file, ",")
    elif style == "tsv":
        _write_csv(table, file, "\t")
    elif style == "json":
        _write_json_lines(table, file)
    elif table.column_names == ["plan"] or table.column_names == ["plan_type", "plan"]:
        _write_plan(table, file)
    else:
        _write_table(table, file, full_cells)


def _write_csv(table: pa.Table, file: IO[str], delimiter: str) -> None:
    written = io.BytesIO()
    options = pyarrow.csv.WriteOptions(delimiter=delimiter)
    pyarrow.csv.write_csv(_flat(table), written, options)
    file.write(written.getvalue().decode())


def _decoded(table: pa.Table) -> pa.Table:
    """Run-end-encoded columns as plain ones: neither Parquet nor CSV has them."""
    for place, column in enumerate(table.schema):
        if pa.types.is_run_end_encoded(column.type):
            plain = pyarrow.compute.run_end_decode(table.column(place))
            table = table.set_column(place, column.name, plain)
    return table


def _flat(table: pa.Table) -> pa.Table:
    """Columns that CSV can hold: lists and structs as JSON text, bytes as base64."""
    table = _decoded(table)
    for place, column in enumerate(table.schema):
        kind, values = column.type, table.column(place)
        if pa.types.is_dictionary(kind):
            values, kind = values.cast(kind.value_type), kind.value_type
        if pa.types.is_string_view(kind):
            values = values.cast(pa.string())
        elif not _is_csv(kind):
            texts = [None if v is None else _csv_text(v) for v in values.to_pylist()]
            values = pa.chunked_array([pa.array(texts, pa.string())])
        if values is not table.column(place):
            table = table.set_column(place, column.name, values)
    return table


def _is_csv(kind: pa.DataType) -> bool:
    """Whether pyarrow writes values of this type as text that reads back."""
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_decimal128(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_date(kind)
        or types.is_time(kind)
        or types.is_timestamp(kind)
    )


def _csv_text(value: object) -> str:
    if isinstance(value, dict | list):
        return _json_text(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _write_plan(table: pa.Table, file: IO[str]) -> None:
    """Writes the rows of EXPLAIN unchanged: their lines are a tree."""
    for row in table.to_pylist():
        kind = row.get("plan_type")
        file.write((f"{kind}:\n" if kind else "") + printable(row["plan"].rstrip("\n")) + "\n")


def _write_json_lines(table: pa.Table, file: IO[str]) -> None:
    for batch in table.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            file.write(_json_text(row) + "\n")


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_jsonable)


def _jsonable(value: object) -> str | float:
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def _write_table(
    table: pa.Table, file: IO[str], full_cells: bool, width: int = _PIPE_WIDTH
) -> None:
    console = Console(file=file, width=None if file.isatty() else width, highlight=False)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in table.schema:
        numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        drawn.add_column(Text(printable(column.name)), justify="right" if numeric else "left")
    for batch in table.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            drawn.add_row(*(_cell(value, full_cells) for value in row.values()))
    console.print(drawn)
    console.print(f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}")


def _cell(value: object, full: bool) -> Text:
    """Text, never markup, nor what a terminal obeys: data may hold square brackets and escapes."""
    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    if isinstance(value, dict | list):
        value = _json_text(value)
    shown = printable(" ".join(str(value).split()))
    return Text(
        shown if full or len(shown) <= _CELL_CHARACTERS else shown[: _CELL_CHARACTERS - 1] + "…"
    )
