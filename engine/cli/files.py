"""Tables from files, and results to files and screens, for the command."""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Literal, Protocol, TypeAlias, get_args

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from datafusion.catalog import Table as CatalogTable
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from blendfusion.errors import QueryError, close_matches
from blendfusion.redaction import printable
from blendfusion.search.lance_table import lance_table

Format = Literal["table", "csv", "json", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)

_CELL_CHARACTERS = 60
_PIPE_WIDTH = 160
"""Characters a line where there is no terminal to ask."""


class Catalog(Protocol):
    """What registers files as tables: a session, or DataFusion's own context."""

    def register_csv(
        self, name: str, path: str, *, delimiter: str = ",", file_extension: str = ".csv"
    ) -> None: ...

    def register_json(self, name: str, path: str, *, file_extension: str = ".json") -> None: ...

    def register_arrow(self, name: str, path: str, *, file_extension: str = ".arrow") -> None: ...

    def register_parquet(
        self, name: str, path: str, *, file_extension: str = ".parquet"
    ) -> None: ...

    def register_table(self, name: str, table: CatalogTable) -> None: ...


Register: TypeAlias = Callable[[Catalog, str, str, str], None]


def _csv(catalog: Catalog, name: str, path: str, extension: str) -> None:
    catalog.register_csv(name, path, file_extension=extension)


def _tsv(catalog: Catalog, name: str, path: str, extension: str) -> None:
    catalog.register_csv(name, path, delimiter="\t", file_extension=extension)


def _json(catalog: Catalog, name: str, path: str, extension: str) -> None:
    catalog.register_json(name, path, file_extension=extension)


def _arrow(catalog: Catalog, name: str, path: str, extension: str) -> None:
    catalog.register_arrow(name, path, file_extension=extension)


def _parquet(catalog: Catalog, name: str, path: str, extension: str) -> None:
    catalog.register_parquet(name, path, file_extension=extension)


def _lance(catalog: Catalog, name: str, path: str, extension: str) -> None:
    catalog.register_table(name, lance_table(path))


_READERS: dict[str, Register] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".json": _json,  # one object a line, as in .ndjson
    ".ndjson": _json,
    ".jsonl": _json,
    ".arrow": _arrow,
    ".parquet": _parquet,
    ".lance": _lance,
}

_FORMAT_OF: dict[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".ndjson": "json",
    ".jsonl": "json",
    ".parquet": "parquet",
}


def register_file(catalog: Catalog, spec: str) -> str:
    """Register ``name=path`` and return the name; the extension says how the file is read.

    Raises ``QueryError`` for a wrong spec, a missing file and an unknown extension.
    """
    name, equals, path = spec.partition("=")
    if not equals or not name.strip() or not path:
        raise QueryError(
            f"--table {spec!r} is not NAME=PATH", hint="For example: --table reviews=reviews.csv"
        )
    file = Path(path).expanduser()
    if not file.exists():
        near = ""
        if file.parent.is_dir():
            near = close_matches(file.name, (other.name for other in file.parent.iterdir()))
        raise QueryError(f"--table {name}: there is no file '{path}'", hint=near or None)
    extension = file.suffix.lower()
    if extension not in _READERS:
        raise QueryError(
            f"--table {name}: how to read '{path}'?",
            hint=f"The extensions known are {', '.join(_READERS)}.",
        )
    _READERS[extension](catalog, name.strip(), str(file), file.suffix)
    return name.strip()


def format_for(output: Path | None) -> Format:
    """The format that the name of the output file asks for; a table for screens and the rest."""
    return "table" if output is None else _FORMAT_OF.get(output.suffix.lower(), "table")


def write(table: pa.Table, style: Format, output: Path | None) -> None:
    """Write ``table`` to the file ``output``, or to standard output if it is None.

    Raises ``QueryError`` for Parquet without a file, and if the file cannot be written.
    """
    if output is None:
        if style == "parquet":
            raise QueryError("Parquet needs a file", hint="Name one with --output FILE.")
        _write_text(table, style, sys.stdout)
        return
    try:
        if style == "parquet":
            pyarrow.parquet.write_table(table, output)
        else:
            with output.open("w", encoding="utf-8", newline="") as file:
                _write_text(table, style, file)
    except OSError as error:
        raise QueryError(f"cannot write '{output}': {error.strerror or error}") from error


def _write_text(table: pa.Table, style: Format, file: IO[str]) -> None:
    if style == "csv":
        _write_csv(table, file)
    elif style == "json":
        _write_json_lines(table, file)
    else:
        _write_table(table, file)


def _write_csv(table: pa.Table, file: IO[str]) -> None:
    written = io.BytesIO()
    pyarrow.csv.write_csv(_flat(table), written)
    file.write(written.getvalue().decode())


def _flat(table: pa.Table) -> pa.Table:
    """Lists and structs as JSON text: CSV has no other place for them."""
    for place, column in enumerate(table.schema):
        if pa.types.is_nested(column.type):
            texts = [None if v is None else _json_text(v) for v in table.column(place).to_pylist()]
            table = table.set_column(place, column.name, pa.array(texts, pa.string()))
    return table


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


def _write_table(table: pa.Table, file: IO[str]) -> None:
    terminal = file.isatty()
    console = Console(file=file, width=None if terminal else _PIPE_WIDTH, highlight=False)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in table.schema:
        numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        drawn.add_column(Text(printable(column.name)), justify="right" if numeric else "left")
    for batch in table.to_batches(max_chunksize=4096):
        for row in batch.to_pylist():
            drawn.add_row(*(_cell(value) for value in row.values()))
    console.print(drawn)
    console.print(f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}")


def _cell(value: object) -> Text:
    """Text, never markup, nor what a terminal obeys: data may hold square brackets and escapes."""
    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    if isinstance(value, dict | list):
        value = _json_text(value)
    shown = printable(" ".join(str(value).split()))
    return Text(shown if len(shown) <= _CELL_CHARACTERS else shown[: _CELL_CHARACTERS - 1] + "…")
