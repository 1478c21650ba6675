"""Results to files and screens, for the command."""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Literal, TypeAlias, get_args

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import blendfusion as bf
from blendfusion.errors import QueryError
from blendfusion.files.row_writers import ROW_WRITERS, flat, text_of
from blendfusion.files.spreadsheets import write_sheet
from blendfusion.places.whole_file import replacing
from blendfusion.redaction import printable
from blendfusion.run.observe.progress import progress

Format = Literal["table", "csv", "tsv", "json", "arrow", "parquet", "xlsx"]
FORMATS: tuple[Format, ...] = get_args(Format)

_CELL_CHARACTERS = 60
"""The most characters of a cell, unless a screen has room for more."""
_PIPE_WIDTH = 160
"""Characters a line where there is no terminal to ask."""
_FILE_WIDTH = 100_000
"""Characters a line in a file: no line is broken."""
_READABLE = 12
"""The characters that a wide column has at least, before values stand below one another."""
_GAP = 3
"""Characters between two columns."""


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
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_COMPRESSED: frozenset[Format] = frozenset({"csv", "tsv", "json"})
_NEEDS_FILE: frozenset[Format] = frozenset({"arrow", "parquet", "xlsx"})


def format_for(output: Path | None) -> Format:
    """The format that the name of the output file asks for, as o.csv or o.csv.gz; a table for
    screens.

    Raises QueryError for an extension that no format has.
    """
    if output is None:
        return "table"
    compression = _compression(output)
    plain = output if compression is None else output.with_suffix("")
    style = _FORMAT_OF.get(plain.suffix.lower())
    if style is None or (compression and style not in _COMPRESSED):
        extension = "".join(output.suffixes[-2:] if compression else output.suffixes[-1:])
        raise QueryError(
            f"--output {output}: how to write '{extension or output.name}'?",
            hint=f"The extensions known are {', '.join(_FORMAT_OF)}; --format says it, too. "
            f"Text can be compressed: .csv.gz, .jsonl.zst.",
        )
    return style


def _compression(output: Path) -> str | None:
    return _COMPRESSIONS.get(output.suffix.lower())


def check_output(style: Format, output: Path | None) -> None:
    """Raise QueryError if nothing in this format can be written there, before anything is asked."""
    if output is None:
        if style in _NEEDS_FILE:
            raise QueryError(f"{style} needs a file", hint="Name one with --output FILE.")
    elif output.is_dir() or not output.parent.is_dir():
        raise QueryError(f"cannot write '{output}': no file can be there", hint="Name a file.")
    elif _compression(output) and style not in _COMPRESSED:
        raise QueryError(
            f"{style} is not compressed as '{output.suffix}'", hint=f"Name it {output.stem}."
        )


Rows: TypeAlias = "pa.Table | bf.Frame"
"""A result: a table, or a frame that is run now."""


def write(rows: Rows, style: Format, output: Path | None, *, full_cells: bool = False) -> int:
    """Write ``rows`` to the file ``output``, or to standard output if it is None; returns their
    number.

    The rows of a frame are written as they come, except tables for screens and spreadsheets, and
    except on a terminal. A file is written whole or not at all. ``full_cells`` shows the whole text
    of each cell of a table that is drawn; files have it anyway. Raises QueryError if the file
    cannot be written, and the errors of the frame."""
    check_output(style, output)
    if output is None:
        return _print(rows, style, full_cells)
    try:
        with replacing(output) as part:
            return _write_file(rows, style, part, _compression(output))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise QueryError(f"cannot write '{output}': {error.strerror or error}") from error


def page_of(table: pa.Table, *, full_cells: bool = False) -> str:
    """``table`` as it is drawn on the terminal, as text."""
    text = io.StringIO()
    _draw(table, text, full_cells, shutil.get_terminal_size((_PIPE_WIDTH, 0)).columns)
    return text.getvalue()


def _print(rows: Rows, style: Format, full_cells: bool) -> int:
    if style not in ROW_WRITERS:
        table = _whole(rows)
        _draw(table, sys.stdout, full_cells)
        return len(table)
    if sys.stdout.isatty():
        rows = _whole(rows)  # first, since the line of progress is on the same screen
    sys.stdout.flush()
    if not isinstance(rows, bf.Frame) or _is_file(sys.stdout):
        return _write_rows(rows, style, sys.stdout.buffer)
    # What reads the pipe may draw on the screen, as a pager does: the line ends with the first row.
    rows.session.reporter = reporter = progress(rows.session.options.progress)
    try:
        return _write_rows(rows, style, sys.stdout.buffer, begin=reporter.close)
    finally:
        rows.session.reporter = None


def _is_file(stream: IO[str]) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # a stream of this process only
        return False


def _whole(rows: Rows) -> pa.Table:
    return rows.to_arrow_table() if isinstance(rows, bf.Frame) else rows


def _write_rows(
    rows: Rows, style: Format, file: IO[bytes], *, begin: Callable[[], None] | None = None
) -> int:
    """Write ``rows`` and return their number; ``begin`` is called before the first."""
    count = 0

    def pass_on(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        nonlocal count
        for table in tables:
            if begin is not None and not count:
                begin()
            count += len(table)
            yield table
            if begin is not None:
                file.flush()

    with closing(_tables(rows)) as tables:
        ROW_WRITERS[style](pass_on(tables), file)
    return count


def _tables(rows: Rows) -> Generator[pa.Table, None, None]:
    """Tables of one schema; at least one."""
    if not isinstance(rows, bf.Frame):
        yield rows
        return
    schema: pa.Schema | None = None
    with rows.stream(eager=True) as stream:
        for batch in stream:
            table = pa.Table.from_batches([batch.to_pyarrow()])
            schema = schema or table.schema
            yield table.cast(schema)
        if schema is None:
            yield stream.schema.empty_table()


def _write_file(rows: Rows, style: Format, file: Path, compression: str | None) -> int:
    if style in ROW_WRITERS:
        with _open(file, compression) as sink:
            return _write_rows(rows, style, sink)
    table = _whole(rows)
    if style == "xlsx":
        write_sheet(flat(table), file)
    else:
        with file.open("w", encoding="utf-8", newline="") as text:
            _draw(table, text, full_cells=True, screen_width=_FILE_WIDTH)
    return len(table)


def _open(file: Path, compression: str | None) -> IO[bytes]:
    if compression is None:
        return file.open("wb")
    compressed: IO[bytes] = pa.CompressedOutputStream(str(file), compression)
    return compressed


def _draw(
    table: pa.Table, file: IO[str], full_cells: bool, screen_width: int | None = None
) -> None:
    """``screen_width``: the characters of a line of the screen that shows ``file``."""
    if table.column_names in (["plan"], ["plan_type", "plan"]):
        _write_plan(table, file)
    else:
        _write_table(table, file, full_cells, screen_width)


def _write_plan(table: pa.Table, file: IO[str]) -> None:
    """Writes the rows of EXPLAIN unchanged: their lines are a tree."""
    for row in table.to_pylist():
        kind = row.get("plan_type")
        file.write((f"{kind}:\n" if kind else "") + printable(row["plan"].rstrip("\n")) + "\n")


def _write_table(
    table: pa.Table, file: IO[str], full_cells: bool, screen_width: int | None
) -> None:
    """Draws rows below one another, or, where the columns find no room, value below value."""
    width = screen_width or (None if file.isatty() else _PIPE_WIDTH)
    console = _Console(file=file, width=width, highlight=False)
    most: int | None = None
    if not full_cells:
        room = console.width // max(1, table.num_columns) - _GAP
        most = max(_CELL_CHARACTERS, room if file.isatty() or screen_width else 0)
    names = [Text(printable(name)) for name in table.column_names]
    rows = [
        [_cell(value, most) for value in row]
        for batch in table.to_batches(max_chunksize=4096)
        for row in _values(batch)
    ]
    if _needed_width(names, rows) <= console.width:
        drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name, kind in zip(names, table.schema.types, strict=True):
            numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            drawn.add_column(name, justify="right" if numeric else "left", overflow="fold")
        for cells in rows:
            drawn.add_row(*cells)
        console.print(drawn)
    else:
        for number, cells in enumerate(rows, 1):
            console.rule(f"row {number:,}", align="left", style="dim", characters="─")
            drawn = Table(box=None, show_header=False, padding=(0, _GAP, 0, 0))
            drawn.add_column(overflow="fold", max_width=console.width // 2)
            drawn.add_column(overflow="fold")
            for name, cell in zip(names, cells, strict=True):
                drawn.add_row(name, cell)
            console.print(drawn)
    console.print(f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leaves the error to the command, which ends quietly."""
        raise


def _values(batch: pa.RecordBatch) -> Iterator[tuple[object, ...]]:
    """The rows of a batch; names may be there twice."""
    columns = [column.to_pylist(maps_as_pydicts="lossy") for column in batch.columns]
    return zip(*columns, strict=True) if columns else iter([()] * len(batch))


def _needed_width(names: list[Text], rows: list[list[Text]]) -> int:
    """The characters of a line in which every column is readable."""
    widths = [name.cell_len for name in names]
    for cells in rows:
        widths = [max(width, cell.cell_len) for width, cell in zip(widths, cells, strict=True)]
    return sum(min(width, _READABLE) + _GAP for width in widths) - _GAP


def _cell(value: object, most: int | None) -> Text:
    """Text, never markup, nor what a terminal obeys: data may hold square brackets and escapes. It
    is cut at ``most`` characters."""
    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, float):
        return Text(f"{value:.6g}")
    shown = printable(
        " ".join((repr(value) if isinstance(value, bytes) else text_of(value)).split())
    )
    return Text(shown if most is None or len(shown) <= most else shown[: most - 1] + "…")
